#include "cli/help.h"

#include <string.h>

#include "cli/args.h"

static const char *const groups[] = {"Produce", "Work",         "Look", "Decide",
                                     "Run it",  "Inside a job", NULL};

static void
print_name(FILE *out, const struct cli_cmd *cmd, int width)
{
    char name[64];

    snprintf(name, sizeof(name), "%s%s%s", cmd->noun, cmd->verb ? " " : "",
             cmd->verb ? cmd->verb : "");
    fprintf(out, "%-*s", width, name);
}

void
cli_help_overview(FILE *out, const struct cli_cmd *const *commands)
{
    fputs(
        "weir - a job queue on Redis that loses nothing\n\n"
        "  weir dev                                a private server, nothing to set up\n"
        "  weir enqueue greet '{\"name\":\"Ada\"}'     put a job in\n"
        "  weir work -q default -- ./greet.sh      run a command for every job\n"
        "  weir status                             what is going on\n"
        "  weir audit                              proof that nothing was lost\n",
        out);
    for (const char *const *group = groups; *group; group++) {
        fprintf(out, "\n%s\n", *group);
        for (const struct cli_cmd *const *c = commands; *c; c++) {
            if (strcmp((*c)->group, *group) != 0)
                continue;
            fputs("  ", out);
            print_name(out, *c, 16);
            fprintf(out, " %s\n", (*c)->summary);
        }
    }
    fputs("\nweir COMMAND --help shows the flags; weir help --all all of them.\n", out);
}

void
cli_help_noun(FILE *out, const struct cli_cmd *const *commands, const char *noun)
{
    fprintf(out, "weir %s VERB\n\n", noun);
    for (; *commands; commands++) {
        if (strcmp((*commands)->noun, noun) != 0)
            continue;
        fputs("  ", out);
        print_name(out, *commands, 16);
        fprintf(out, " %-12s %s\n", (*commands)->args, (*commands)->summary);
    }
    fputs("\nweir COMMAND --help shows the flags.\n", out);
}

static void
print_options(FILE *out, const struct cli_opt *o)
{
    for (; o && o->name; o++) {
        char text[64], letter[5] = "    ";
        bool optional = o->type == CLI_EVERY || o->type == CLI_MAYBE ||
                        o->type == CLI_OPTIONAL;

        if (o->letter)
            snprintf(letter, sizeof(letter), "-%c, ", o->letter);
        snprintf(text, sizeof(text), "--%s%s%s%s", o->name,
                 o->arg ? (optional ? "[=" : " ") : "", o->arg ? o->arg : "",
                 optional ? "]" : "");
        fprintf(out, "  %s%-24s %s\n", letter, text, o->help);
    }
}

void
cli_help_command(FILE *out, const struct cli_cmd *cmd)
{
    fprintf(out, "weir %s%s%s - %s\n\n", cmd->noun, cmd->verb ? " " : "",
            cmd->verb ? cmd->verb : "", cmd->summary);
    if (cmd->examples)
        fprintf(out, "%s\n", cmd->examples);
    fprintf(out, "usage: weir %s%s%s [FLAGS] %s\n", cmd->noun, cmd->verb ? " " : "",
            cmd->verb ? cmd->verb : "", cmd->args);
    if (cmd->alias)
        fprintf(out, "alias: weir %s\n", cmd->alias);
    if (cmd->opts) {
        fputc('\n', out);
        print_options(out, cmd->opts);
    }
    fputs("\nFlags of every command\n", out);
    print_options(out, cli_global_options);
}

void
cli_help_tree(FILE *out, const struct cli_cmd *const *commands)
{
    for (; *commands; commands++) {
        const struct cli_cmd *cmd = *commands;

        fputs("weir ", out);
        print_name(out, cmd, 0);
        fprintf(out, "%s%s\n      %s\n", *cmd->args ? " " : "", cmd->args, cmd->summary);
        print_options(out, cmd->opts);
    }
    fputs("\nFlags of every command\n", out);
    print_options(out, cli_global_options);
}

static bool
is_first_of_noun(const struct cli_cmd *const *commands, const struct cli_cmd *cmd)
{
    while (strcmp((*commands)->noun, cmd->noun) != 0)
        commands++;
    return *commands == cmd;
}

static void
complete_flags(FILE *out, const struct cli_opt *o)
{
    for (; o && o->name; o++)
        fprintf(out, " --%s", o->name);
}

void
cli_help_completion(FILE *out, const struct cli_cmd *const *commands)
{
    fputs("# bash completion of weir; made by `weir completion bash`\n"
          "_weir() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} first=${COMP_WORDS[1]} words=\n"
          "    if ((COMP_CWORD == 1)); then\n"
          "        words=\"",
          out);
    for (const struct cli_cmd *const *c = commands; *c; c++) {
        if (is_first_of_noun(commands, *c))
            fprintf(out, "%s ", (*c)->noun);
    }
    fputs("\"\n    else\n        case \"$first ${COMP_WORDS[2]}\" in\n", out);
    for (const struct cli_cmd *const *c = commands; *c; c++) {
        if (!(*c)->verb)
            fprintf(out, "        \"%s \"*) words=\"", (*c)->noun);
        else
            fprintf(out, "        \"%s %s\") words=\"", (*c)->noun, (*c)->verb);
        complete_flags(out, (*c)->opts);
        complete_flags(out, cli_global_options);
        fputs("\" ;;\n", out);
    }
    for (const struct cli_cmd *const *c = commands; *c; c++) {
        if (!(*c)->verb || !is_first_of_noun(commands, *c))
            continue;
        fprintf(out, "        \"%s \"*) words=\"", (*c)->noun);
        for (const struct cli_cmd *const *v = c; *v; v++) {
            if (strcmp((*v)->noun, (*c)->noun) == 0)
                fprintf(out, "%s ", (*v)->verb);
        }
        fputs("\" ;;\n", out);
    }
    fputs("        esac\n    fi\n"
          "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
          "}\n"
          "complete -o default -F _weir weir\n",
          out);
}
