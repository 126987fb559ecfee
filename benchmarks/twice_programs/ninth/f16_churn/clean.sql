CREATE TABLE visit_clean AS
SELECT subscriber, at, min(seconds, 3600) AS seconds, device
FROM visit
WHERE seconds >= 30
ORDER BY subscriber, at;

CREATE INDEX visit_clean_subscriber ON visit_clean (subscriber);
