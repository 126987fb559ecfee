-- Restrict by calendar time and age, add the end of follow-up.
CREATE OR REPLACE TABLE cohort AS
SELECT f.person_id,
       f.label,
       f.procedure_concept_id,
       f.start_date,
       f.start_date + INTERVAL 365 DAY AS end_date,
       year(f.start_date) - p.year_of_birth AS age,
       p.gender_concept_id,
       f.total_paid
FROM first_event f
JOIN person p USING (person_id)
WHERE f.start_date BETWEEN DATE '2014-01-01' AND DATE '2014-12-31'
  AND year(f.start_date) - p.year_of_birth >= 50;
