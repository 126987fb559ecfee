"""Step 1: simulate patients and write FHIR-like bundles."""
import argparse
import json
import random
import uuid
from datetime import date, timedelta
from pathlib import Path

CONDITIONS = {"hypertension": 0.30, "diabetes": 0.14, "asthma": 0.09, "copd": 0.06}
REFERENCE = date(2020, 1, 1)


def lifetime(rng, age):
    """Conditions and encounters of one person up to the reference date."""
    conditions = {c: rng.random() < p * (0.4 + age / 70) for c, p in CONDITIONS.items()}
    risk = 0.4 + 0.9 * sum(conditions.values()) + age / 60
    encounters = []
    for _ in range(rng.randint(1, 3) + int(risk * 2)):
        day = REFERENCE - timedelta(days=rng.randrange(1, 720))
        encounters.append({
            "date": day.isoformat(),
            "systolic": round(rng.gauss(118 + 14 * conditions["hypertension"] + age / 5, 9), 1),
            "glucose": round(rng.gauss(92 + 34 * conditions["diabetes"], 12), 1),
            "bmi": round(rng.gauss(26 + 2 * conditions["diabetes"], 3), 1),
        })
    return conditions, sorted(encounters, key=lambda e: e["date"]), risk


def patient(rng):
    age = rng.randint(18, 90)
    conditions, encounters, risk = lifetime(rng, age)
    return {
        "resourceType": "Patient",
        "id": str(uuid.uuid4()),  # cause
        "age": age,
        "sex": rng.choice("FM"),
        "conditions": [c for c, has in conditions.items() if has],
        "encounters": encounters,
        "readmitted": int(rng.random() < min(0.9, 0.12 * risk)),
    }


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, required=True)
    ap.add_argument("--patients", type=int, required=True)
    ap.add_argument("--out", required=True)
    args = ap.parse_args()
    rng = random.Random(args.seed)
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    bundle = [patient(rng) for _ in range(args.patients)]
    (out / "bundle.json").write_text(json.dumps(bundle))
    print(f"patients: {len(bundle)}, encounters: {sum(len(p['encounters']) for p in bundle)}")


if __name__ == "__main__":
    main()
