// The precompiled header that all tests share (tests/CMakeLists.txt).
