"""Storm runoff from four subcatchments routed to an outfall; an EPA SWMM report.

Output format: the .rpt status report of SWMM 5 and its console progress.
Seen at: https://github.com/dleutnant/swmmr/issues/72
         https://github.com/pyswmm/pyswmm/issues/234
Field: hydrology.
"""
import math
import os
import struct
import sys
import time
import zipfile
from dataclasses import dataclass, field

DT = 10.0                      # routing step, s
HOURS = 9
RAIN = [0, 4, 12, 34, 55, 21, 9, 5, 2, 1, 0, 0]      # mm/h, 15 minute bars


@dataclass
class Subcatchment:
    name: str
    area: float               # ha
    width: float              # m
    slope: float
    imperv: float
    f0: float
    fc: float
    decay: float = 4.14 / 3600
    depth: float = 0.0
    wet: float = 0.0
    tot: dict = field(default_factory=lambda: dict(rain=0.0, infil=0.0, run=0.0, peak=0.0))

    def step(self, rain_ms):
        pervious = 1 - self.imperv
        cap = (self.fc + (self.f0 - self.fc) * math.exp(-self.decay * self.wet)) / 1000 / 3600
        infil = min(cap, rain_ms + self.depth / DT) * pervious
        if rain_ms > 0:
            self.wet += DT
        self.depth += (rain_ms - infil) * DT
        excess = max(self.depth - 0.0015, 0.0)
        q = self.width * math.sqrt(self.slope) * excess ** (5 / 3) / 0.035 if excess else 0.0
        q = min(q, excess * self.area * 1e4 / DT)
        self.depth -= q * DT / (self.area * 1e4)
        t = self.tot
        t["rain"] += rain_ms * DT
        t["infil"] += infil * DT
        t["run"] += q * DT
        t["peak"] = max(t["peak"], q)
        return q


@dataclass
class Conduit:
    name: str
    length: float
    diam: float
    slope: float
    vol: float = 0.0
    peak: float = 0.0
    when: float = 0.0

    def step(self, qin, t):
        self.vol += qin * DT
        area = min(self.vol / self.length, math.pi * self.diam ** 2 / 4)
        radius = self.diam / 4
        q = area * radius ** (2 / 3) * math.sqrt(self.slope) / 0.013
        q = min(q, self.vol / DT)
        self.vol -= q * DT
        if q > self.peak:
            self.peak, self.when = q, t
        return q


def main():
    began, t0 = time.time(), time.perf_counter()
    inp = os.path.join(os.getcwd(), "site.inp")
    print("... EPA-SWMM 5.2 (Build 5.2.4)\n")
    print(" o  Retrieving project data")
    subs = [Subcatchment("S1", 4.0, 180, 0.010, 0.35, 76, 13), Subcatchment("S2", 2.5, 140, 0.015, 0.60, 76, 10),
            Subcatchment("S3", 6.2, 210, 0.008, 0.20, 110, 18), Subcatchment("S4", 1.1, 90, 0.020, 0.85, 50, 7)]
    pipes = [Conduit("C1", 120, 0.6, 0.004), Conduit("C2", 150, 0.75, 0.004), Conduit("C3", 200, 0.9, 0.003)]
    steps = int(HOURS * 3600 / DT)
    outflow = out_total = in_total = 0.0
    result = open("site.out", "wb")
    result.write(struct.pack("<iid", 516114522, 52004, began))          # the run's time stamp
    for i in range(steps):
        t = i * DT
        bar = int(t // 900)
        rain = (RAIN[bar] if bar < len(RAIN) else 0) / 1000 / 3600
        q = [s.step(rain) for s in subs]
        a = pipes[0].step(q[0] + q[1], t)
        b = pipes[1].step(a + q[2], t)
        c = pipes[2].step(b + q[3], t)
        in_total += sum(q) * DT
        out_total += c * DT
        if i % 360 == 0:
            sys.stdout.write(f"\r o  Simulating day: {int(t // 86400):4d}     hour: {int(t // 3600):2d}   ({time.perf_counter() - t0:.3f} s)")
        if i % 90 == 0:
            result.write(struct.pack("<dfff", t, *[float(v) for v in (a, b, c)]))
        time.sleep(0.0003)
    result.close()
    outflow = c
    stored = sum(p.vol for p in pipes)
    ended = time.time()
    print("\n o  Writing output report")
    ha_m = lambda m3: m3 / 1e4
    tot_area = sum(s.area for s in subs)
    rain = sum(s.tot["rain"] * s.area for s in subs) / tot_area * 1000
    infil = sum(s.tot["infil"] * s.area for s in subs) / tot_area * 1000
    run = sum(s.tot["run"] for s in subs) / (tot_area * 1e4) * 1000
    final = sum(s.depth * s.area for s in subs) / tot_area * 1000
    star = "  **************************"
    out = ["", "  EPA STORM WATER MANAGEMENT MODEL - VERSION 5.2 (Build 5.2.4)", "  " + "-" * 60, "",
           "  ****************", "  Analysis Options", "  ****************", "  Flow Units ............... CMS",
           "  Infiltration Method ...... HORTON", "  Flow Routing Method ...... KINWAVE",
           f"  Routing Time Step ........ {DT:.2f} sec", "",
           star + "        Volume         Depth", "  Runoff Quantity Continuity     hectare-m            mm",
           star + "     ---------       -------"]
    for label, mm in (("Total Precipitation ......", rain), ("Infiltration Loss ........", infil),
                      ("Surface Runoff ...........", run), ("Final Storage ............", final)):
        out.append(f"  {label} {mm / 1000 * tot_area:13.3f} {mm:13.3f}")
    out.append(f"  Continuity Error (%) ..... {100 * (rain - infil - run - final) / rain:13.3f}")
    out += ["", star + "        Volume        Volume", "  Flow Routing Continuity        hectare-m      10^6 ltr",
            star + "     ---------     ---------"]
    for label, m3 in (("Wet Weather Inflow .......", in_total), ("External Outflow .........", out_total),
                      ("Final Stored Volume ......", stored)):
        out.append(f"  {label} {ha_m(m3):13.3f} {m3 / 1000:13.3f}")
    out.append(f"  Continuity Error (%) ..... {100 * (in_total - out_total - stored) / in_total:13.3f}")
    out += ["", "  Subcatchment Runoff Summary", "  " + "-" * 66,
            "  Subcatchment   Precip mm   Infil mm  Runoff mm  Peak CMS  Coeff"]
    for s in subs:
        mm = s.tot["run"] / (s.area * 1e4) * 1000
        out.append(f"  {s.name:<12}{s.tot['rain'] * 1000:12.2f}{s.tot['infil'] * 1000:11.2f}{mm:11.2f}{s.tot['peak']:10.3f}{mm / (s.tot['rain'] * 1000):7.3f}")
    out += ["", "  Link Flow Summary", "  " + "-" * 66, "  Link     Type       Max Flow CMS   Time of Max days hr:min"]
    for p in pipes:
        out.append(f"  {p.name:<8} CONDUIT   {p.peak:12.3f}      0  {int(p.when // 3600):02d}:{int(p.when % 3600 // 60):02d}")
    elapsed = ended - began
    out += ["", f"  Analysis begun on:  {time.ctime(began)}", f"  Analysis ended on:  {time.ctime(ended)}",
            f"  Total elapsed time: {'< 1 sec' if elapsed < 1 else time.strftime('%H:%M:%S', time.gmtime(elapsed))}"]
    with open("site.rpt", "w") as fh:
        fh.write("\n".join(out) + "\n")
    with zipfile.ZipFile("site.zip", "w", zipfile.ZIP_DEFLATED) as z:
        z.write("site.rpt")
        z.write("site.out")
    print("\n".join(out))
    print(f"\n... EPA-SWMM completed in {time.perf_counter() - t0:.2f} seconds.   [{inp}]")
    print(f"final outfall flow {outflow:.6f} CMS")


if __name__ == "__main__":
    main()
