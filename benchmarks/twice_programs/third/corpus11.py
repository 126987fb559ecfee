from mill.data import reviews
for row in reviews():
    print(f"{row['label']} {row['text']}")
