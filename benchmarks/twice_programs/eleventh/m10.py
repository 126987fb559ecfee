"""Synthetic encounter generator and readmission analysis.

Modelled on https://github.com/healthchainai/HealthChain/pull/80
Generates patients and hospital encounters with Faker and models readmission.
"""
import argparse
import json
import logging
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
from faker import Faker
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

log = logging.getLogger("readmission")

CONDITIONS = ["asthma", "diabetes", "fracture", "pneumonia", "heart_failure", "checkup"]
WARDS = ["medicine", "surgery", "cardiology", "day_unit"]


@dataclass
class GeneratorConfig:
    random_seed: int = 42
    patients: int = 220
    max_encounters: int = 6
    window: str = "-2y"
    readmission_days: int = 60


@dataclass
class Encounter:
    encounter_id: str
    patient_id: str
    start: datetime
    end: datetime
    ward: str
    condition: str
    medications: list = field(default_factory=list)


class PatientGenerator:
    def __init__(self, fake):
        self.fake = fake

    def generate(self):
        return {
            "patient_id": self.fake.uuid4(),
            "name": self.fake.name(),
            "city": self.fake.city(),
            "birth_year": self.fake.random_int(1930, 2005),
            "smoker": self.fake.boolean(chance_of_getting_true=25),
        }


class MedicationGenerator:
    NAMES = ["salbutamol", "metformin", "ibuprofen", "amoxicillin", "furosemide", "aspirin"]

    def __init__(self, fake):
        self.fake = fake

    def generate(self):
        count = self.fake.random_int(0, 3)
        return sorted(self.fake.random_elements(self.NAMES, length=count, unique=True))


class EncounterGenerator:
    def __init__(self, fake, config):
        self.fake = fake
        self.config = config
        self.medication = MedicationGenerator(fake)

    def generate(self, patient):
        start = self.fake.date_time_between(start_date=self.config.window)  # cause
        hours = self.fake.random_int(4, 240)
        return Encounter(
            encounter_id=self.fake.bothify("ENC-####-????").upper(),
            patient_id=patient["patient_id"],
            start=start,
            end=start + timedelta(hours=hours),
            ward=self.fake.random_element(WARDS),
            condition=self.fake.random_element(CONDITIONS),
            medications=self.medication.generate(),
        )


class DataGenerator:
    def __init__(self, config):
        self.config = config
        Faker.seed(config.random_seed)
        self.fake = Faker("en_GB")
        self.patients = PatientGenerator(self.fake)
        self.encounters = EncounterGenerator(self.fake, config)

    def generate(self):
        people, visits = [], []
        for _ in range(self.config.patients):
            patient = self.patients.generate()
            people.append(patient)
            for _ in range(self.fake.random_int(1, self.config.max_encounters)):
                visits.append(self.encounters.generate(patient))
        frame = pd.DataFrame([vars(v) for v in visits])
        frame["medications"] = frame["medications"].str.join(";")
        return pd.DataFrame(people), frame


def derive_features(people, visits, config):
    visits = visits.sort_values(["patient_id", "start"]).reset_index(drop=True)
    visits["length_days"] = (visits["end"] - visits["start"]).dt.total_seconds() / 86400
    visits["start_hour"] = visits["start"].dt.hour + visits["start"].dt.minute / 60
    visits["night"] = ((visits["start_hour"] < 7) | (visits["start_hour"] > 21)).astype(int)
    visits["weekend"] = (visits["start"].dt.dayofweek >= 5).astype(int)
    following = visits.groupby("patient_id")["start"].shift(-1)
    gap = (following - visits["end"]).dt.total_seconds() / 86400
    visits["readmitted"] = (gap < config.readmission_days).astype(int)
    visits["n_medications"] = visits["medications"].str.split(";").map(lambda m: len([x for x in m if x]))
    return visits.merge(people[["patient_id", "birth_year", "smoker"]], on="patient_id")


def fit_model(table):
    numeric = ["length_days", "start_hour", "night", "weekend", "n_medications", "birth_year", "smoker"]
    X = pd.concat([table[numeric].astype(float), pd.get_dummies(table["ward"], dtype=float)], axis=1)
    X = (X - X.mean()) / X.std().replace(0, 1)
    y = table["readmitted"].to_numpy()
    order = np.random.default_rng(5).permutation(len(y))
    cut = int(0.7 * len(y))
    train, test = order[:cut], order[cut:]
    model = LogisticRegression(C=0.5, max_iter=500).fit(X.iloc[train], y[train])
    p = model.predict_proba(X.iloc[test])[:, 1]
    return {
        "n_train": int(len(train)),
        "n_test": int(len(test)),
        "rate": round(float(y.mean()), 5),
        "auc": round(float(roc_auc_score(y[test], p)), 6),
        "coefficients": dict(zip(X.columns, model.coef_[0].round(6).tolist())),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--random-seed", type=int, default=GeneratorConfig.random_seed)
    parser.add_argument("--patients", type=int, default=GeneratorConfig.patients)
    parser.add_argument("--out", default="encounters_out")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    config = GeneratorConfig(random_seed=args.random_seed, patients=args.patients)

    people, visits = DataGenerator(config).generate()
    log.info("generated %d patients and %d encounters", len(people), len(visits))
    table = derive_features(people, visits, config)
    result = fit_model(table)

    out = Path(args.out)
    out.mkdir(exist_ok=True)
    people.to_csv(out / "patients.csv", index=False)
    visits.to_csv(out / "encounters.csv", index=False)
    (out / "model.json").write_text(json.dumps(result, indent=2))

    summary = table.groupby("ward").agg(n=("ward", "size"), days=("length_days", "mean"),
                                        hour=("start_hour", "mean"), readmitted=("readmitted", "mean"))
    print(summary.round(5).to_string())
    print(f"readmission rate {result['rate']:.4f}, auc {result['auc']:.5f}")
    for name, value in result["coefficients"].items():
        print(f"  {name:<14s} {value: .5f}")


if __name__ == "__main__":
    main()
