CREATE OR REPLACE VIEW staging AS
SELECT
    customer_id,
    day,
    cents,
    merchant,
    online,
    day >= 270 AS later
FROM read_parquet(getvariable('source'));
