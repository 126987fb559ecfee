"""PID controller with output limits, anti-windup and derivative on measurement."""
import time


def clamp(value, limits):
    lo, hi = limits
    return max(lo, min(hi, value))


class PID:
    def __init__(self, kp, ki, kd, setpoint=0.0, limits=(0.0, 1.0)):
        self.kp, self.ki, self.kd = kp, ki, kd
        self.setpoint, self.limits = setpoint, limits
        self._integral = 0.0
        self._last_input = None
        self._last_time = None
        self._filtered = 0.0

    def __call__(self, value):
        now = time.monotonic()  # cause
        dt = now - self._last_time if self._last_time is not None else 1e-3
        dt = max(dt, 1e-9)
        error = self.setpoint - value
        self._integral = clamp(self._integral + self.ki * error * dt, self.limits)
        slope = 0.0 if self._last_input is None else (value - self._last_input) / dt
        self._filtered += 0.2 * (slope - self._filtered)
        self._last_input, self._last_time = value, now
        return clamp(self.kp * error + self._integral - self.kd * self._filtered, self.limits)
