import { PassThrough, Readable } from "node:stream";
import { type FollowLogsOptions, followLogs } from "../../../../src/cli/logs/follow.ts";
import { LinePrinter } from "../../../../src/cli/logs/lines.ts";
import { Failure } from "../../../../src/cli/shared/failure.ts";
import { Gaps } from "../../../../src/cli/shared/gaps.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { job, type LogCluster } from "./log-cluster.ts";

export const at = (second: number, text: string): Buffer =>
  Buffer.from(`2026-01-01T00:00:${String(second).padStart(2, "0")}.000000000Z ${text}\n`);

/** A `legation logs -f` that runs. */
export class Following {
  out = "";
  readonly err: string[] = [];
  readonly clock: FakeClock = new FakeClock();
  readonly gaps: Gaps = new Gaps((line) => this.err.push(line));
  readonly abort: AbortController = new AbortController();
  readonly ended: Promise<void>;
  isOver = false;

  constructor(
    host: LogCluster,
    of: ReturnType<typeof job>,
    members: Readonly<Record<string, LogCluster>>,
    options: Partial<FollowLogsOptions> = {},
  ) {
    const printer = new LinePrinter((bytes) => {
      this.out += bytes.toString();
    });
    this.ended = followLogs(
      of,
      { all: false, timestamps: false, maxStreams: 10, ...options },
      {
        gaps: this.gaps,
        printer,
        signal: this.abort.signal,
        clock: this.clock,
        host: { name: "host", client: host.client, isHost: true },
        open: async (name) => {
          const member = members[name];
          if (member === undefined)
            throw new Failure("failure", { object: name, problem: "no way in", remedy: "find one" });
          return { name, client: member.client, isHost: false };
        },
      },
    ).finally(() => {
      this.isOver = true;
    });
    this.ended.catch(() => undefined);
  }

  /** Lets seconds pass, each with what happens in it. */
  async pass(seconds: number): Promise<void> {
    await this.clock.advanceInSteps(seconds * 2, 500);
  }
}

export const JOB: ReturnType<typeof job> = job({ member: "west" });
export const FINISHED: ReturnType<typeof job> = job({ member: "west", finished: true });

/** A log that grows as the test writes, and its end. */
export function growing(cluster: LogCluster): Readonly<Record<string, PassThrough>> {
  const streams: Record<string, PassThrough> = {};
  cluster.onStream = ({ pod, query }) => {
    if (query.follow === undefined) return Readable.from([]);
    const stream = new PassThrough();
    streams[pod] = stream;
    return stream;
  };
  return streams;
}
