"""Modelled on https://cursos.alura.com.br/forum/topico-convergencewarning-liblinear-failed-to-converge-increase-the-number-of-iterations-291617
Predicts from project records whether a software job is finished within its budget.
"""
import csv
import logging
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC, LinearSVC
from sklearn.preprocessing import StandardScaler

SEED = 20
log = logging.getLogger("projetos")


@dataclass
class Dados:
    x: pd.DataFrame
    y: pd.Series


def gerar_projetos(n=2157, semente=SEED):
    """Table of projects with expected hours, price and outcome."""
    rng = np.random.default_rng(semente)
    horas = rng.integers(2, 100, n)
    preco = np.round(horas * rng.normal(32, 9, n).clip(10, 70) + rng.normal(0, 120, n), 2)
    linguagem = rng.choice(["python", "java", "php", "ruby"], n, p=[0.4, 0.3, 0.2, 0.1])
    equipe = rng.integers(1, 9, n)
    revisoes = rng.poisson(2.5, n)
    atraso = rng.exponential(4.0, n).round(1)
    chance = -1.0 + 1.4 * np.sin(horas / 14) + preco / 2600 - 0.12 * revisoes - 0.08 * atraso
    chance += np.where(linguagem == "python", 0.3, 0.0) + 0.05 * equipe
    concluido = rng.random(n) < 1 / (1 + np.exp(-chance))
    return pd.DataFrame(
        {
            "unfinished": (~concluido).astype(int),
            "expected_hours": horas,
            "price": preco,
            "language": linguagem,
            "team": equipe,
            "reviews": revisoes,
            "delay": atraso,
        }
    )


def preparar(tabela):
    tabela = tabela.copy()
    tabela["finished"] = 1 - tabela.pop("unfinished")
    x = tabela.drop(columns="finished")
    x = pd.get_dummies(x, columns=["language"], dtype=float)
    x["hourly"] = x["price"] / x["expected_hours"]
    return Dados(x, tabela["finished"])


def separar(dados):
    treino_x, teste_x, treino_y, teste_y = train_test_split(
        dados.x, dados.y, random_state=SEED, test_size=0.25, stratify=dados.y
    )
    print("Treino: %d elementos" % len(treino_x))
    print("Teste: %d elementos" % len(teste_x))
    return treino_x, teste_x, treino_y, teste_y


def avaliar(nome, y, previsoes):
    acuracia = accuracy_score(y, previsoes) * 100
    f1 = f1_score(y, previsoes)
    (tn, fp), (fn, tp) = confusion_matrix(y, previsoes, labels=[0, 1])
    print(f"{nome:<14} acuracia {acuracia:.2f}%  f1 {f1:.4f}  tp={tp} fp={fp} fn={fn} tn={tn}")
    return {"modelo": nome, "acuracia": round(acuracia, 4), "f1": round(f1, 6), "tp": tp, "fp": fp, "fn": fn, "tn": tn}


def base(treino_x, treino_y, teste_x):
    modelo = DummyClassifier(strategy="most_frequent")
    modelo.fit(treino_x, treino_y)
    return modelo.predict(teste_x)


def linear(treino_x, treino_y, teste_x):
    modelo = LinearSVC(dual=True, max_iter=1000)  # cause
    modelo.fit(treino_x, treino_y)  # cause
    coef = ", ".join(f"{n}={c:+.6f}" for n, c in zip(treino_x.columns, modelo.coef_[0]))
    print("coeficientes:", coef)
    return modelo.predict(teste_x), modelo.decision_function(teste_x)


def radial(treino_x, treino_y, teste_x):
    escala = StandardScaler().fit(treino_x)
    modelo = SVC(gamma="scale", random_state=SEED)
    modelo.fit(escala.transform(treino_x), treino_y)
    return modelo.predict(escala.transform(teste_x))


def fronteira(decisao, passos=(-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)):
    """How many test projects lie above some margins."""
    return {p: int((decisao > p).sum()) for p in passos}


def por_faixa(teste_x, y, previsoes):
    faixas = pd.cut(teste_x["expected_hours"], [0, 20, 40, 60, 80, 100])
    certo = pd.Series(np.asarray(y) == np.asarray(previsoes), index=teste_x.index)
    return certo.groupby(faixas, observed=True).mean()


def resumo_precos(tabela):
    """Median price and share of finished projects for each language."""
    grupos = tabela.groupby("language")
    linhas = pd.DataFrame({"preco": grupos["price"].median(), "concluidos": 1 - grupos["unfinished"].mean()})
    for nome, linha in linhas.iterrows():
        print(f"  {nome:<7} preco mediano {linha.preco:9.2f} concluidos {linha.concluidos:.4f}")


def gravar(linhas, caminho):
    with open(caminho, "w", newline="") as arq:
        w = csv.DictWriter(arq, fieldnames=list(linhas[0]))
        w.writeheader()
        w.writerows(linhas)


def main():
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(name)s %(message)s")
    warnings.simplefilter("ignore", ConvergenceWarning)
    tabela = gerar_projetos()
    tabela.to_csv("projetos.csv", index=False)
    log.info("%d projetos, %.1f%% nao concluidos", len(tabela), 100 * tabela.unfinished.mean())
    resumo_precos(tabela)
    treino_x, teste_x, treino_y, teste_y = separar(preparar(tabela))

    resultados = [avaliar("base", teste_y, base(treino_x, treino_y, teste_x))]
    previsoes, decisao = linear(treino_x, treino_y, teste_x)
    resultados.append(avaliar("linear", teste_y, previsoes))
    print("acima da margem:", fronteira(decisao))
    for faixa, valor in por_faixa(teste_x, teste_y, previsoes).items():
        print(f"  horas {faixa}: {valor:.4f}")
    resultados.append(avaliar("rbf", teste_y, radial(treino_x, treino_y, teste_x)))

    gravar(resultados, "resultados.csv")
    saida = teste_x[["expected_hours", "price"]].assign(real=teste_y, previsto=previsoes, decisao=decisao.round(6))
    saida.sort_index().to_csv("previsoes.csv")
    melhor = max(resultados, key=lambda r: r["acuracia"])
    print("melhor:", melhor["modelo"])
    Path("melhor.txt").write_text(melhor["modelo"] + "\n")


if __name__ == "__main__":
    main()
