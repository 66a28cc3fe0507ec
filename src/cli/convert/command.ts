import { stringify } from "yaml";
import { counted } from "../../api/wording.ts";
import { type Equip, equipped, flags } from "../shared/command.ts";
import { readDocuments } from "../shared/documents.ts";
import { Failure } from "../shared/failure.ts";
import { manifestPaths, toggle, withGlobals } from "../shared/input.ts";
import { convert } from "./convert.ts";

export const command: Equip = equipped({
  description:
    "Turns objects of KubeFed, Karmada and Admiralty into ordinary manifests with Legation's annotations, on standard " +
    "output: federated objects and their scheduling preferences; propagation and override policies, with the objects " +
    "that they select; and annotations on pods and workloads. Fields that have no equal are listed on standard error, " +
    "with what to do instead. It reads and writes no cluster.",
  flags: flags({
    "-f, --filename <files...>": "manifests: files, folders (their *.yaml, *.yml and *.json), or - for standard input",
    "--strict": "end with 5 if a field has no equal",
  }),
  examples: {
    "convert -f federated/ > ordinary.yaml": "a folder with KubeFed's objects",
    "convert -f policies.yaml -f app.yaml": "Karmada's policies, and the objects that they select",
    "convert -f - --strict": "in a pipeline, which fails when something is lost",
  },
  input: withGlobals({
    filename: manifestPaths,
    strict: toggle,
  }),
  run: async ({ filename, strict, output }, { stdin, signal, terminal }) => {
    const input = await readDocuments(filename, stdin, signal);
    const { objects, report } = convert(input);
    if (output === "json") terminal.print(JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }, null, 2));
    else
      terminal.write(
        objects.map((object) => stringify(object, { aliasDuplicateObjects: false, lineWidth: 0 })).join("---\n"),
      );
    const { gaps, steps } = report;
    if (gaps.length > 0) terminal.progress(`${counted(gaps.length, "field")} without an equal:`);
    for (const { object, field, problem, instead } of gaps) {
      terminal.progress(`- ${object}: ${field}: ${problem}\n  instead: ${instead}`);
    }
    if (steps.size > 0) terminal.progress("to do besides `kubectl apply`:");
    for (const line of steps) terminal.progress(`- ${line}`);
    if (strict && gaps.length > 0) {
      throw new Failure("unfit", {
        object: "the manifests",
        problem: `${counted(gaps.length, "field")} without an equal`,
        remedy: "the list above says what to do instead",
      });
    }
  },
});
