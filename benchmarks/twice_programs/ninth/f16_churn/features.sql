CREATE TABLE aged AS
SELECT
    subscriber,
    seconds,
    device,
    julianday('now') - julianday(at) AS age  -- # cause
FROM visit_clean;

CREATE TABLE features AS
SELECT
    s.id,
    s.plan,
    count(a.age) AS visits,
    coalesce(sum(a.seconds), 0) / 3600.0 AS hours,
    coalesce(min(a.age), 999) AS recency,
    coalesce(avg(a.age), 999) AS mean_age,
    coalesce(sum(a.seconds / (1.0 + a.age)), 0) AS fresh,
    coalesce(sum(a.device = 'app'), 0) AS app,
    s.churned
FROM subscriber AS s
LEFT JOIN aged AS a ON a.subscriber = s.id
GROUP BY s.id
ORDER BY s.id;
