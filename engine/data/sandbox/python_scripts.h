// The Python programs that are compiled into Decoscope. Only for engine/data.
#pragma once

namespace engine {

extern const char* const kPythonDriver;  // python_driver.py
extern const char* const kPythonProbe;   // python_probe.py

}  // namespace engine
