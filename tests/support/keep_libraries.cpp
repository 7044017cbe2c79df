// Keeps the display driver's libraries loaded under AddressSanitizer. The driver unloads itself
// when a window closes; memory that only its variables point to would be reported as leaked.
extern "C" int dlclose(void* /*library*/) noexcept {
  return 0;
}
