-- Typed tables and views over the extracts.
CREATE OR REPLACE TABLE person AS
SELECT * FROM read_parquet('${extract}/person.parquet');

CREATE OR REPLACE VIEW procedure_occurrence AS
SELECT * REPLACE (CAST(procedure_date AS DATE) AS procedure_date)
FROM read_parquet('${extract}/procedure_occurrence.parquet');

CREATE OR REPLACE TABLE condition_occurrence AS
SELECT * REPLACE (CAST(condition_start_date AS DATE) AS condition_start_date)
FROM read_parquet('${extract}/condition_occurrence.parquet');

CREATE OR REPLACE TABLE codesets (codeset_id INTEGER, concept_id INTEGER, label VARCHAR);
INSERT INTO codesets VALUES
    (22, 2005902, 'total knee'),
    (22, 2104836, 'total knee'),
    (22, 2104837, 'partial knee'),
    (22, 2105103, 'revision'),
    (22, 2006073, 'arthroscopy');
