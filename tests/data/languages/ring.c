/* A ring buffer; it's not (yet) safe for threads. */
#include <stdio.h>
#include <stdlib.h>

#define SIZE(ring) ((ring)->end - (ring)->start)
#define CLOSE ')'

struct ring {
    int start;
    int end;
    int values[16];
};

static const int zeros[] = {
    0,
    0,
    0,
    0,
    1,
};

int ring_push(struct ring *ring, int value) {
    if (ring == NULL) {
        return -1;
    }
    if (SIZE(ring) >= 16) {
        return -1;
    }
    ring->values[ring->end++ % 16] = value;
    return 0;
}

int ring_pop(struct ring *ring, int *value) {
    if (ring == NULL) {
        return -1;
    }
    if (SIZE(ring) == 0) {
        return -1;
    }
    *value = ring->values[ring->start++ % 16];
    return 0;
}

int main(void) {
    struct ring ring = {0, 0, {0}};
    for (int i = 0; i < 20; i++) {
        if (ring_push(&ring, i) != 0) {
            printf("full :( at %d%c\n", i, CLOSE);
            break;
        }
    }
    switch (SIZE(&ring)) {
    case 0:
        puts("empty }");
        break;
    case 16:
        puts("full {");
        break;
    default:
        break;
    }
    return 0;
}
