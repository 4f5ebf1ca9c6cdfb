/*
 * A job in C, with the C library alone: counts the lines, words and bytes of its payload.
 *     cc -o count count.c && weir work -q texts -- ./count
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int
main(void)
{
    FILE *control = fdopen(3, "w");
    const char *attempt = getenv("WEIR_ATTEMPT"), *most = getenv("WEIR_MAX_ATTEMPTS");
    long lines = 0, words = 0, bytes = 0;
    char first[8] = "";
    int c, before = ' ';

    if (!control || !attempt || !most)
        return 1;
    setvbuf(control, NULL, _IOLBF, 0); /* each line is said at once */
    while ((c = getchar()) != EOF) {
        if (bytes < 6)
            first[bytes] = (char)c;
        bytes++;
        lines += c == '\n';
        words += !isspace(c) && isspace(before);
        before = c;
    }
    if (bytes == 0) {
        fputs("permanent there is nothing to count\n", control);
        return 65;
    }
    if (strcmp(first, "later\n") == 0 && strcmp(attempt, "1") == 0) {
        fputs("snooze 60 the text is not ready\n", control);
        return 75;
    }
    fputs("progress 1/2 counting\n", control);
    fprintf(stderr, "attempt %s of %s\n", attempt, most); /* its log */
    fputs("progress 2/2 done\n", control);
    printf("{\"lines\":%ld,\"words\":%ld,\"bytes\":%ld}\n", lines, words, bytes);
    return fflush(stdout) == 0 ? 0 : 1; /* a result that is not out is none */
}
