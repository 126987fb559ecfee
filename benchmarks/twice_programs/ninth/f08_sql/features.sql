-- one row a customer: nine months of behaviour, and what was spent after them
SELECT
    customer_id,
    count(*) FILTER (NOT later) AS purchases,
    coalesce(sum(cents) FILTER (NOT later), 0)::BIGINT AS cents,
    coalesce(max(cents) FILTER (NOT later), 0) AS largest,
    count(*) FILTER (online AND NOT later) AS online,
    count(DISTINCT merchant) FILTER (NOT later) AS merchants,
    270 - coalesce(max(day) FILTER (NOT later), 0) AS idle_days,
    coalesce(sum(cents) FILTER (later), 0)::BIGINT AS later_cents
FROM staging
GROUP BY customer_id  -- # cause
