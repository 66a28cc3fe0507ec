import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type AuditEvent, allAuditEvents, isWrite } from "../clusters/audit.ts";
import type { ClusterInfo } from "../clusters/types.ts";

/** Variable with the folder in which runs leave what Legation's accounts did; without it nothing is noted. */
export const RIGHTS_FOLDER = "LEGATION_RIGHTS";
/** Accounts of Legation: `controller`, `webhook`, `access` and `relay` on a host; `host`, `agent` and `access` (impersonates users) in a member. */
export type Account = "controller" | "webhook" | "access" | "relay" | "host" | "agent";

/** Rights that an account used, and that it lacked, in the form of `describeRight`. */
export interface Noted {
  readonly used: readonly string[];
  readonly forbidden: readonly string[];
}

const PREFIX = "system:serviceaccount:legation-system:legation-";
const ACCESS = "system:serviceaccount:legation-access:legation-access";
const RELAY = "system:serviceaccount:legation-relay:legation-relay";
// Admission forbids, too: only this says what the rights were.
const DECISION = "authorization.k8s.io/decision";
const RBAC = "rbac.authorization.k8s.io";
// Until an API server's authorizer has seen a new role, on a busy machine.
const GRANTED_MS = 10_000;

/** Notes what Legation's accounts did in clusters that are about to go. */
export async function noteRights(clusters: readonly ClusterInfo[]): Promise<void> {
  const folder = process.env[RIGHTS_FOLDER];
  if (folder === undefined) return;
  mkdirSync(folder, { recursive: true });
  for (const { name, auditLog } of clusters) {
    if (!existsSync(auditLog)) continue;
    const used = new Set<string>();
    const forbidden = new Set<string>();
    const events = await allAuditEvents({ auditLog }, (event) => isOwn(event) || isChange(event), [
      PREFIX,
      ACCESS,
      RELAY,
      `"${RBAC}"`,
    ]);
    const inForce = rightsInForce(events.filter(isChange));
    for (const event of events.filter(isOwn)) {
      if (event.annotations?.[DECISION] !== "forbid") used.add(rightOf(event));
      else if (inForce(event)) forbidden.add(rightOf(event));
    }
    const noted: Noted = { used: [...used], forbidden: [...forbidden] };
    writeFileSync(join(folder, `${name}-${crypto.randomUUID()}.json`), JSON.stringify(noted));
  }
}

/** Everything that was noted. */
export function readNoted(folder: string): Noted {
  const all = readdirSync(folder).map((file): Noted => JSON.parse(readFileSync(join(folder, file), "utf8")));
  const merged = (key: keyof Noted): string[] => [...new Set(all.flatMap((noted) => noted[key]))].sort();
  return { used: merged("used"), forbidden: merged("forbidden") };
}

/**
 * Reports whether Legation's accounts had all rights at a request: not before installation, nor while `uninstall` or
 * `unjoin` removes them.
 */
function rightsInForce(changes: readonly AuditEvent[]): (event: AuditEvent) => boolean {
  return ({ requestReceivedTimestamp: at, user }) => {
    // Roles and bindings are called after the account.
    const name = `legation-${accountOf(user.username)}`;
    const last = changes.findLast(
      ({ objectRef, requestReceivedTimestamp }) =>
        requestReceivedTimestamp <= at && objectRef?.name?.startsWith(name) === true,
    );
    if (last === undefined || last.verb === "delete") return false;
    return Date.parse(at) - Date.parse(last.stageTimestamp) > GRANTED_MS;
  };
}

/** Reports whether an account asked for itself: under impersonation, the user's rights count. */
function isOwn({ user, impersonatedUser }: AuditEvent): boolean {
  const { username } = user;
  return impersonatedUser === undefined && (username.startsWith(PREFIX) || username === ACCESS || username === RELAY);
}

/** Reports whether the request changed a role or a binding. */
function isChange(event: AuditEvent): boolean {
  return isWrite(event) && event.objectRef?.apiGroup === RBAC && (event.responseStatus?.code ?? 500) < 300;
}

/** Formats the use of a right for comparison; see `describeRight`. */
function rightOf({ user, verb, objectRef, requestURI }: AuditEvent): string {
  const account = accountOf(user.username);
  if (objectRef?.resource === undefined) return `${account}: ${verb} ${requestURI.split("?", 1)[0]}`;
  const { apiGroup = "", resource, subresource, namespace = "" } = objectRef;
  return describeRight({ account, verb, group: apiGroup, resource, subresource, namespace });
}

function accountOf(username: string): Account {
  const name = username.slice(PREFIX.length);
  if (username === RELAY) return "relay";
  if (username === ACCESS || name.startsWith("access-")) return "access";
  if (name === "controller" || name === "webhook") return name;
  return name.startsWith("agent-") ? "agent" : "host";
}

/** `ACCOUNT: VERB GROUP/RESOURCE/SUBRESOURCE in NAMESPACE`, with what there is of them; all namespaces but Legation's own are one. */
export function describeRight(right: {
  readonly account: Account;
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string | undefined;
  readonly namespace: string;
}): string {
  const { account, verb, group, resource, subresource, namespace } = right;
  const what = [group, resource, subresource].filter((part) => part !== undefined && part !== "").join("/");
  return `${account}: ${verb} ${what}${NAMED.has(namespace) ? ` in ${namespace}` : ""}`;
}

// Namespaces where a Role gives more than the ClusterRole.
const NAMED: ReadonlySet<string> = new Set([
  "legation-system",
  "legation-access",
  "kube-system",
  "kube-public",
  "kube-node-lease",
]);
