// A stand-in for Windows' bcryptprimitives.dll, which Wine 8 lacks and Rust's std needs: it fills a
// buffer with random bytes through advapi32. For tests alone; no release carries it.
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG length);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T length) {
  while (length > 0) {
    ULONG part = length > 0x40000000 ? 0x40000000 : (ULONG)length;
    if (!SystemFunction036(data, part)) return FALSE;
    data += part;
    length -= part;
  }
  return TRUE;
}
