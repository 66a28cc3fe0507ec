import { Argument } from "commander";
import { z } from "zod";
import { type Equip, equipped } from "../shared/command.ts";
import { withGlobals } from "../shared/input.ts";
import { SCRIPTS, SHELLS } from "./shells.ts";

export const command: Equip = equipped({
  description:
    "Prints a script that completes commands, flags, and names of members, namespaces and pods in your shell. Names are read " +
    "from the host with the kubeconfig and context of the line that is completed.",
  arguments: [new Argument("<shell>", SHELLS.join(", "))],
  flags: [],
  examples: {
    "completion bash > /etc/bash_completion.d/legation": "for all users of a machine",
    "completion fish | source": "in this shell",
  },
  input: withGlobals({
    shell: z.enum(SHELLS, {
      error: ({ input }) => `${JSON.stringify(input)} is no shell that it knows; write ${SHELLS.join(", ")}`,
    }),
  }),
  run: async ({ shell }, { terminal }) => {
    terminal.write(SCRIPTS[shell]);
  },
});
