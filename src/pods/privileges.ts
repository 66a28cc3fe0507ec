import { jsonEqual, valueAt } from "../api/json.ts";

// Volume types that the restricted Pod Security Standard allows, and `image`.
const COMMON_VOLUMES: ReadonlySet<string> = new Set([
  "configMap",
  "csi",
  "downwardAPI",
  "emptyDir",
  "ephemeral",
  "image",
  "persistentVolumeClaim",
  "projected",
  "secret",
]);

// Fields that give privileges, and fields whose absence may.
const GIVING = ["hostNetwork", "hostPID", "hostIPC"];
const WITHHOLDING = ["hostUsers", "securityContext", "os"];
const HANDLERS = [
  ["livenessProbe"],
  ["readinessProbe"],
  ["startupProbe"],
  ["lifecycle", "postStart"],
  ["lifecycle", "preStop"],
];

type Fields = Readonly<Record<string, unknown>>;

interface Privileges {
  readonly given: Map<string, unknown>;
  readonly withheld: Map<string, unknown>;
}

/** Returns paths that the Pod Security Standards judge, such as `spec.containers[0].securityContext`. */
export function changedPrivileges(before: unknown, after: unknown): string[] {
  const [had, has] = [privilegesOf(before), privilegesOf(after)];
  const differs = (of: keyof Privileges, path: string): boolean => !jsonEqual(had[of].get(path), has[of].get(path));
  const withheld = new Set([...had.withheld.keys(), ...has.withheld.keys()]);
  return [
    ...[...has.given.keys()].filter((path) => differs("given", path)),
    ...[...withheld].filter((path) => differs("withheld", path)),
  ];
}

function privilegesOf(spec: unknown): Privileges {
  const found: Privileges = { given: new Map(), withheld: new Map() };
  const pod = fieldsOf(spec);
  for (const field of GIVING) give(found.given, `spec.${field}`, pod[field]);
  for (const field of WITHHOLDING) note(found.withheld, `spec.${field}`, pod[field]);
  for (const list of ["initContainers", "containers"]) {
    for (const [index, container] of itemsOf(pod[list]).entries()) {
      noteContainer(found, `spec.${list}[${index}]`, container);
    }
  }
  for (const { name, ...source } of itemsOf(pod.volumes)) {
    for (const kind of Object.keys(source).filter((each) => !COMMON_VOLUMES.has(each))) {
      give(found.given, `spec.volumes[${name}].${kind}`, source[kind]);
    }
  }
  return found;
}

function noteContainer({ given, withheld }: Privileges, path: string, container: Fields): void {
  note(withheld, `${path}.securityContext`, container.securityContext);
  for (const { hostPort } of itemsOf(container.ports)) {
    if (hostPort !== undefined) give(given, `${path}.ports: hostPort ${JSON.stringify(hostPort)}`, hostPort);
  }
  for (const handler of HANDLERS) {
    for (const action of ["httpGet", "tcpSocket"]) {
      const host = [...handler, action, "host"];
      give(given, `${path}.${host.join(".")}`, valueAt(container, host));
    }
  }
}

function give(found: Map<string, unknown>, path: string, value: unknown): void {
  if (value !== false && value !== 0 && value !== "") note(found, path, value);
}

function note(found: Map<string, unknown>, path: string, value: unknown): void {
  if (value !== undefined && value !== null) found.set(path, value);
}

/** A patch may have put anything there. */
function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function itemsOf(value: unknown): Fields[] {
  return Array.isArray(value) ? value.map(fieldsOf) : [];
}
