import { counted } from "../../api/wording.ts";
import { type Examination, examine } from "../explain/installation/examine.ts";
import { countStates } from "../explain/installation/finding.ts";
import { type ServicePath, servicePathGroups } from "../explain/installation/service-path.ts";
import { type Equip, equipped, flags } from "../shared/command.ts";
import { Failure } from "../shared/failure.ts";
import { hiddenText } from "../shared/hidden.ts";
import { commaList, duration, flagRules, memberName, readText, withGlobals } from "../shared/input.ts";
import { printOutcome } from "../shared/output.ts";
import { packageVersion } from "../shared/package-root.ts";
import { BIND_VIEWER } from "../shared/reading.ts";
import { findingsText } from "./text.ts";

const memberList = commaList.superRefine((names, context) => {
  const wrong = names.find((name) => !memberName.safeParse(name).success);
  if (wrong === undefined) return;
  context.addIssue(
    `${JSON.stringify(wrong)} is no member's name; write names with commas between them, e.g. west,east`,
  );
});

const servicePath = readText((text): ServicePath | undefined => {
  const [, namespace = "", name = "", port] = /^([^/:]+)\/([^/:]+)(?::([^/:]+))?$/.exec(text) ?? [];
  return name === "" ? undefined : { namespace, name, port };
}, "is no Service; write NAMESPACE/NAME or NAMESPACE/NAME:PORT, e.g. shop/web:80");

export const command: Equip = equipped({
  description:
    "Checks an installation from end to end: versions, what is installed, the admission webhook as the API server reaches it, " +
    "certificates and tokens, the leading controller, each member with its rights, clock and kubelet API, access for users, and " +
    "namespaces. It only reads, and asks by server-side dry run; --service sends one small request to a Service's pods. Each finding has its remedy. Exits with 1 if one is FAIL.",
  flags: flags({
    "--members <list>": "members to check, e.g. west,east (default: all)",
    "--service <namespace/name[:port]>":
      "opens connections to a Service's pods by each way that leads to them, and checks nothing else",
    "--timeout <duration>": "how long each part, and each member, may take to answer (default: 10s)",
  }),
  examples: {
    doctor: "everything",
    "doctor --members west": "the host and one member",
    "doctor --service shop/web:80": "where connections to a Service get, and what is in their way",
    "doctor -o json | jq -r '.groups[].findings[] | select(.state == \"FAIL\") | .remedy'": "remedies, for a script",
  },
  input: withGlobals({
    members: memberList.optional(),
    service: servicePath.optional(),
    timeout: duration.default(10_000),
  }).superRefine(flagRules({ excludes: { members: "service" } })),
  working: "checking",
  run: async ({ members, service, timeout: timeoutMs, ...options }, session) => {
    const { terminal, signal } = session;
    const { client, namespace } = await session.connect(options, "host");
    const version = packageVersion();
    const onStep = (step: string): void => terminal.step(`checking ${step}`);
    const { groups, hidden }: Examination =
      service === undefined
        ? await examine(client, { members, timeoutMs, version, namespace }, session, onStep)
        : { groups: await servicePathGroups(client, service, { timeoutMs, signal }) };
    const counts = countStates(groups);
    printOutcome(terminal, options.output, {
      text: [findingsText(groups, terminal), ...hiddenText(hidden, terminal)].join("\n"),
      document: { healthy: counts.FAIL === 0 && hidden === undefined, counts, groups, hidden },
    });
    if (counts.FAIL > 0) {
      throw new Failure("failure", { object: "doctor", problem: `found ${counted(counts.FAIL, "failure")}` });
    }
    if (hidden !== undefined) {
      const problem = "has not seen the members, so it cannot tell that all is well";
      throw new Failure("failure", { object: "doctor", problem, remedy: BIND_VIEWER });
    }
  },
});
