// SPDX-License-Identifier: Apache-2.0 OR MIT
// Four threads of each of two ranks, for the programs with MPI_THREAD_MULTIPLE.
#ifndef CREW_H
#define CREW_H

#include "standard.h"

#include <pthread.h>

enum { THREADS = 4 };

struct task {
    void (*run)(int thread);
    int thread;
};

static void *begin(void *argument) {
    struct task *task = argument;
    task->run(task->thread);
    return NULL;
}

static void in_threads(void (*run)(int thread)) {
    pthread_t threads[THREADS];
    struct task tasks[THREADS];
    if (rank > 1) return;
    for (int i = 0; i < THREADS; i++) {
        tasks[i] = (struct task){run, i};
        if (pthread_create(&threads[i], NULL, begin, &tasks[i]) != 0) abort();
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

#endif
