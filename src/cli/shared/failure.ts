import { isKubeError, type KubeError, type KubeErrorCode } from "../../kube/errors.ts";

export type ExitName = "ok" | "failure" | "usage" | "refused" | "notReady" | "unfit" | "interrupted" | "terminated";

/** Exit codes of `legation`. docs/cli.md holds the same table. */
export const EXIT_CODES: Readonly<Record<ExitName, number>> = {
  ok: 0,
  /** An API server, file or the network failed; the message says which. */
  failure: 1,
  /** The command line or environment is wrong; nothing was done. */
  usage: 2,
  /** The request is clear, but the state of the clusters forbids it. */
  refused: 3,
  /** A wait timed out. */
  notReady: 4,
  /** `plan`: something of the manifest would wait or be refused. `convert --strict`: a field has no equal. Nothing was done. */
  unfit: 5,
  /** Ctrl-C (SIGINT), after cleaning up: 128 + 2, as shells count it. */
  interrupted: 130,
  /** SIGTERM, after cleaning up: 128 + 15. */
  terminated: 143,
};

export interface FailureFields {
  /** The subject of the message as a user names it: `Cluster west`, `--labels`. */
  readonly object: string;
  readonly field?: string | undefined;
  readonly problem: string;
  /** The remedy, in words that hold on the page, too. */
  readonly remedy?: string | undefined;
  /** Flags of the command line that follow the remedy. The page has none. */
  readonly flags?: string | undefined;
  readonly cause?: unknown;
}

/** An error for the user: names the object, the field, the problem and the remedy. */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly exit: ExitName;
  readonly remedy: string | undefined;
  readonly flags: string | undefined;

  constructor(exit: Exclude<ExitName, "ok">, fields: FailureFields) {
    const subject = fields.field === undefined ? fields.object : `${fields.object}: ${fields.field}`;
    super(`${subject}: ${fields.problem}`, { cause: fields.cause });
    this.exit = exit;
    this.remedy = fields.remedy;
    this.flags = fields.flags;
  }
}

const REMEDIES: Partial<Record<KubeErrorCode, string>> = {
  Unauthorized: "check the credentials in the kubeconfig",
  BadCredentials: "write --kubeconfig FILE or set KUBECONFIG, and --context if the current one is not meant",
  Forbidden: "use an account that may do this; `install`, `uninstall`, `join` and `unjoin` need cluster-admin",
  NotSent: "check that the API server runs and that the kubeconfig names its address",
  AnswerLost: "run the command again: every command may be repeated",
  TooManyRequests: "the API server is busy: run the command again",
};

// The API server answered, or a proxy that terminates TLS.
const UNVERIFIED =
  "check `certificate-authority` and `tls-server-name` of the kubeconfig, and HTTPS_PROXY and NO_PROXY: " +
  "another server, or a proxy, may have answered";

const OUT_OF_DATE = "renew the API server's certificate, or set this machine's clock when that is what is wrong";

/** Returns the remedy by the error's words, since OpenSSL and Node share no code for certificate errors. */
function remedyOf({ code, detail }: KubeError): string | undefined {
  if (code !== "NotSent" || !/\bcertificate/i.test(detail)) return REMEDIES[code];
  return /\bcertificate (has expired|is not yet valid)\b/i.test(detail) ? OUT_OF_DATE : UNVERIFIED;
}

export interface Diagnosis {
  readonly exit: ExitName;
  readonly message: string;
  readonly remedy?: string | undefined;
}

/** Turns any thrown value into one message. `signal` is the command's own, and tells an interruption from a failure. */
export function diagnose(error: unknown, signal?: AbortSignal): Diagnosis {
  if (signal?.aborted === true && !(error instanceof Failure)) {
    const terminated = signal.reason instanceof Interruption && signal.reason.signal === "SIGTERM";
    return { exit: terminated ? "terminated" : "interrupted", message: "interrupted" };
  }
  if (error instanceof Failure) {
    const { exit, message, remedy, flags } = error;
    return { exit, message, remedy: flags === undefined ? remedy : `${remedy} (${flags})` };
  }
  if (isKubeError(error)) return { exit: "failure", message: sentenceOf(error), remedy: remedyOf(error) };
  const message = error instanceof Error ? error.message : String(error);
  return { exit: "failure", message, remedy: "run it again with --verbose and report what it prints" };
}

/** Returns the error in words for people, where it is not an answer in words already. */
function sentenceOf({ code, cluster, verb, target, resource, objectName = "", detail }: KubeError): string {
  if (code === "BadCredentials") return `${resource}: ${detail}`;
  const asked = resource === "raw" ? `read ${objectName}` : `${verb} ${target}`;
  return `${cluster}: cannot ${asked}: ${plainDetail(detail)}`;
}

const PLAIN: readonly (readonly [RegExp, string])[] = [
  [/^connect ECONNREFUSED (.+)$/, "nothing listens at $1"],
  [/^connect (?:EHOSTUNREACH|ENETUNREACH) (\S+).*$/, "there is no way from here to $1"],
  [/^connect ETIMEDOUT (.+)$/, "$1 does not answer"],
  [/^getaddrinfo (?:ENOTFOUND|EAI_AGAIN) (.+)$/, "the name $1 is not known here"],
  [/^HTTP 404$/, "there is no such path, so it may be the address of something else than an API server"],
  [/^HTTP (\d+)$/, "the server answered with status $1, and no reason"],
];

/** Returns the words of a network or an HTTP server for people. */
export function plainDetail(detail: string): string {
  for (const [words, plain] of PLAIN) if (words.test(detail)) return detail.replace(words, plain);
  return detail;
}

export class Interruption extends Error {
  override readonly name = "Interruption";
  readonly signal: "SIGINT" | "SIGTERM";

  constructor(signal: "SIGINT" | "SIGTERM") {
    super(`interrupted by ${signal}`);
    this.signal = signal;
  }
}
