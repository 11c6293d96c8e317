/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * A program without MPI, and with -DLIBRARY the library that it is linked to, which tells of each
 * run of its constructor. LLVM's library ends a process in which its constructors run twice. */
#ifdef LIBRARY
#include <unistd.h>

__attribute__((constructor)) static void construct(void) {
    /* Whoever does not see this line misses it in the count. */
    if (write(1, "constructed\n", 12) != 12) _exit(1);
}

void needed(void) {}
#else
void needed(void);

int main(void) {
    needed();
    return 0;
}
#endif
