"""What turns layers into images and runs programs in them."""
