// Under AddressSanitizer what the display's driver was loaded as stays loaded. It lets go of itself
// as a window closes, and memory that only its own variables point to would look lost at the end.
extern "C" int dlclose(void* /*library*/) noexcept {
  return 0;
}
