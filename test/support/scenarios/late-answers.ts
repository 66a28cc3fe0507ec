import type { ClusterClient } from "../../../src/kube/client.ts";
import { isKubeError } from "../../../src/kube/errors.ts";
import { events } from "../../../src/kube/resources.ts";
import { metricsOf } from "../harness/metrics-of.ts";
import { eventually } from "../harness/wait.ts";
import { MEMBER_NAMES, type MemberName } from "./members.ts";

/** A moment, and how long each member had been late to answer, or had not answered, by then. */
export interface Moment {
  /** RFC 3339 in seconds, as the API server writes times. */
  readonly time: string;
  /** Start of the controller's process, in seconds since the epoch. */
  readonly controllerStarted: number;
  readonly unresponsiveSeconds: Readonly<Record<MemberName, number>>;
}

/** The controller's account of answers that came late: pods then go to other members than a scenario expects. */
export class LateAnswers {
  readonly #port: number;
  readonly #host: ClusterClient;

  /** Reads the metrics of the controller on this port. */
  constructor(port: number, host: ClusterClient) {
    this.#port = port;
    this.#host = host;
  }

  async now(): Promise<Moment> {
    const time = new Date().toISOString().replace(/\.\d+Z$/, "Z");
    // A controller that lost its lease on a busy machine is started again.
    const series = await eventually(() => metricsOf(this.#port), {
      timeoutMs: 120_000,
      what: "the controller's metrics",
    });
    const late = (name: MemberName): number =>
      series(`legation_member_unresponsive_seconds_total{cluster="${name}"}`) ?? 0;
    const [west, east, north, south] = MEMBER_NAMES.map(late);
    return {
      time,
      controllerStarted: series("process_start_time_seconds") ?? 0,
      unresponsiveSeconds: { west: west ?? 0, east: east ?? 0, north: north ?? 0, south: south ?? 0 },
    };
  }

  /** Returns what was late since then, in words. Undefined when all answers of these members came in time. */
  async since(moment: Moment, members: readonly MemberName[]): Promise<string | undefined> {
    const { controllerStarted, unresponsiveSeconds } = await this.now();
    if (controllerStarted !== moment.controllerStarted) return "the controller was started again";
    const late = members
      .map((name) => ({ name, seconds: unresponsiveSeconds[name] - moment.unresponsiveSeconds[name] }))
      .filter(({ seconds }) => seconds > 0)
      .map(({ name, seconds }) => `${name}'s API server was late, or did not answer, for ${seconds.toFixed(1)} s`);
    return late.length > 0 ? late.join(", ") : this.#silentScheduler(moment);
  }

  async #silentScheduler({ time }: Moment): Promise<string | undefined> {
    const { items } = await this.#host.list(events, { limit: 10_000 });
    return items
      .filter(({ metadata }) => (metadata.creationTimestamp ?? "") >= time)
      .map(({ message = "" }) => /\w+: its scheduler \(default-scheduler\) has not answered within \d+ s/.exec(message))
      .find((match) => match !== null)?.[0];
  }
}

/** Reports whether the host, or Legation's webhook there, gave no answer to a request in time. */
export function isUnanswered(error: unknown): boolean {
  if (isKubeError(error, "AnswerLost", "NotSent")) return true;
  return isKubeError(error, "ServerError") && /deadline exceeded|timed? ?out/i.test(error.message);
}
