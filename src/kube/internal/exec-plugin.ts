import { spawn } from "node:child_process";
import { Socket } from "node:net";
import { z } from "zod";
import { badCredentials, type RequestIdentity } from "../credentials.ts";
import type { Environment } from "../environment-proxy.ts";
import { jsonOrNothing } from "../json.ts";
import { startTimer } from "../timer.ts";

/** The section `users[].user.exec` of a kubeconfig. */
export interface ExecConfig {
  readonly apiVersion: string;
  readonly command: string;
  readonly args?: readonly string[] | null | undefined;
  readonly env?: readonly { readonly name: string; readonly value: string }[] | null | undefined;
  readonly installHint?: string | null | undefined;
  readonly provideClusterInfo?: boolean | null | undefined;
}

export const execConfigSchema: z.ZodType<ExecConfig> = z.object({
  apiVersion: z.enum(["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"], {
    error: 'write "client.authentication.k8s.io/v1", the version that the plugin and this client both speak',
  }),
  command: z.string().min(1),
  args: z.array(z.string()).nullish(),
  env: z.array(z.object({ name: z.string(), value: z.string() })).nullish(),
  installHint: z.string().nullish(),
  provideClusterInfo: z.boolean().nullish(),
});

const credentialSchema = z.object({
  apiVersion: z.string(),
  kind: z.literal("ExecCredential"),
  status: z.object({
    token: z.string().optional(),
    clientCertificateData: z.string().optional(),
    clientKeyData: z.string().optional(),
    expirationTimestamp: z.string().optional(),
  }),
});

interface PluginTimes {
  readonly timeoutMs: number;
  /** Grace for its output after it exits: a child process may hold the pipe open. */
  readonly outputMs: number;
}

const TIMES: PluginTimes = { timeoutMs: 60_000, outputMs: 1_000 };

export interface ExecPluginOptions {
  /** Returns the cluster info for a plugin with `provideClusterInfo`. */
  readonly cluster: () => Readonly<Record<string, unknown>>;
  /** The origin of the kubeconfig, for errors. */
  readonly source: string;
  /** The base environment, extended by `env` of the kubeconfig. */
  readonly env: Environment;
  /**
   * Receives the plugin's standard error as it is written: the user may have to act on it (a code to enter in a browser).
   * Without it, standard error becomes part of the error.
   */
  readonly onStderr?: ((text: string) => void) | undefined;
  readonly times?: PluginTimes;
}

interface Expiring {
  readonly identity: RequestIdentity;
  readonly expiresAt: number;
}

/** Credentials from an exec plugin (client.authentication.k8s.io) without a terminal, kept until they expire. */
export class ExecPlugin {
  readonly #config: ExecConfig;
  readonly #options: ExecPluginOptions;
  #current: Expiring | undefined;
  #running: Promise<RequestIdentity> | undefined;

  constructor(config: ExecConfig, options: ExecPluginOptions) {
    this.#config = config;
    this.#options = options;
  }

  identity(): RequestIdentity | Promise<RequestIdentity> {
    if (this.#current !== undefined && Date.now() < this.#current.expiresAt) return this.#current.identity;
    // Requests that find the credentials expired at the same time share one run.
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  refresh(): void {
    this.#current = undefined;
  }

  async #run(): Promise<RequestIdentity> {
    const { status } = this.#parse(await this.#spawn());
    const { token, clientCertificateData, clientKeyData, expirationTimestamp } = status;
    if (token === undefined && (clientCertificateData === undefined || clientKeyData === undefined)) {
      throw this.#error("answered neither status.token nor status.clientCertificateData with clientKeyData");
    }
    const identity: RequestIdentity = {
      authorization: token === undefined ? undefined : `Bearer ${token}`,
      cert: clientCertificateData,
      key: clientKeyData,
    };
    const expiresAt = expirationTimestamp === undefined ? Number.POSITIVE_INFINITY : Date.parse(expirationTimestamp);
    if (Number.isNaN(expiresAt)) throw this.#error(`status.expirationTimestamp "${expirationTimestamp}" is not a time`);
    this.#current = { identity, expiresAt };
    return identity;
  }

  #parse(text: string): z.infer<typeof credentialSchema> {
    const json = jsonOrNothing(text);
    // The message omits the output, which may hold a credential.
    if (json === undefined) throw this.#error("did not write an ExecCredential as JSON on its standard output");
    const parsed = credentialSchema.safeParse(json);
    if (!parsed.success) throw this.#error(`wrote no valid ExecCredential: ${z.prettifyError(parsed.error)}`);
    if (parsed.data.apiVersion !== this.#config.apiVersion) {
      throw this.#error(`answered with apiVersion ${parsed.data.apiVersion}, not ${this.#config.apiVersion}`);
    }
    return parsed.data;
  }

  #spawn(): Promise<string> {
    const { command, args, env, apiVersion, provideClusterInfo } = this.#config;
    const info = {
      apiVersion,
      kind: "ExecCredential",
      spec: { interactive: false, ...(provideClusterInfo === true ? { cluster: this.#options.cluster() } : {}) },
    };
    const { onStderr, times: { timeoutMs, outputMs } = TIMES } = this.#options;
    return new Promise((resolve, reject) => {
      const child = spawn(command, [...(args ?? [])], {
        stdio: ["ignore", "pipe", "pipe"],
        // A process group of its own, so that a killed shell leaves no children behind.
        detached: true,
        env: {
          ...this.#options.env,
          ...Object.fromEntries((env ?? []).map(({ name, value }) => [name, value])),
          KUBERNETES_EXEC_INFO: JSON.stringify(info),
        },
      });
      // A running plugin does not keep the process alive; its callers have deadlines.
      child.unref();
      for (const stream of [child.stdout, child.stderr]) if (stream instanceof Socket) stream.unref();
      const kill = (): void => killGroup(child.pid);
      process.once("exit", kill);
      let output = "";
      let complaint = "";
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        output += text;
      });
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        if (onStderr === undefined) complaint = (complaint + text).slice(-2_000);
        else onStderr(text);
      });
      const failed = (problem: string): Error =>
        this.#error(complaint.trim() === "" ? problem : `${problem}: ${complaint.trim()}`);
      let timer = startTimer(timeoutMs, () => {
        kill();
        settle(() => reject(failed(`did not end within ${timeoutMs / 1000} s`)));
      }).unref();
      const settle = (end: () => void): void => {
        clearTimeout(timer);
        process.off("exit", kill);
        child.stdout.destroy();
        child.stderr.destroy();
        end();
      };
      const ended = (code: number | null, signal: NodeJS.Signals | null): void =>
        settle(() => {
          if (code === 0) resolve(output);
          else reject(failed(`ended with ${signal ?? `exit code ${code}`}`));
        });
      child.once("error", (cause) =>
        settle(() => reject(this.#error(`could not be started: ${cause.message}`, cause))),
      );
      child.once("exit", (code, signal) => {
        clearTimeout(timer);
        timer = startTimer(outputMs, () => ended(code, signal));
      });
      child.once("close", ended);
    });
  }

  #error(problem: string, cause?: unknown): Error {
    const hint = this.#config.installHint;
    const advice = hint === undefined || hint === null || hint === "" ? "" : ` (${hint.trim()})`;
    return badCredentials(`exec plugin ${this.#config.command} ${problem}${advice}`, this.#options.source, cause);
  }
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The group is gone already.
  }
}
