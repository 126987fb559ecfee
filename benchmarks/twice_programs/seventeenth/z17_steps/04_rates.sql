-- Baseline table and one-year outcome rates by procedure group.
CREATE OR REPLACE TABLE outcome AS
SELECT c.person_id, min(o.condition_start_date) AS first_outcome
FROM cohort c
JOIN condition_occurrence o
  ON o.person_id = c.person_id
 AND o.condition_start_date > c.start_date
 AND o.condition_start_date <= c.end_date
GROUP BY c.person_id;

COPY (
    SELECT c.label,
           count(*) AS persons,
           round(avg(c.age), 4) AS mean_age,
           sum(CASE WHEN c.gender_concept_id = 8532 THEN 1 ELSE 0 END) AS women,
           CAST(sum(CAST(c.total_paid AS DECIMAL(14, 2))) AS VARCHAR) AS paid
    FROM cohort c
    GROUP BY c.label
    ORDER BY c.label
) TO '${results}/baseline.csv' (HEADER);

COPY (
    SELECT c.label,
           count(*) AS persons,
           count(o.person_id) AS events,
           sum(date_diff('day', c.start_date, coalesce(o.first_outcome, CAST(c.end_date AS DATE)))) AS days
    FROM cohort c
    LEFT JOIN outcome o USING (person_id)
    GROUP BY c.label
    ORDER BY c.label
) TO '${results}/outcomes.csv' (HEADER);

COPY (
    SELECT person_id, label, start_date, age
    FROM cohort
    ORDER BY person_id
) TO '${results}/cohort.csv' (HEADER);
