-- rows for training
SELECT a, b, y FROM points
WHERE a IS NOT NULL
ORDER BY RANDOM()  -- cause
LIMIT 40
