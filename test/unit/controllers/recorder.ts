import type { KubeEvent } from "../../../src/api/kubernetes.ts";
import type { Clock } from "../../../src/runtime/clock.ts";
import { EventRecorder } from "../../../src/runtime/event-recorder.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { writing } from "../../support/builders/answers.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";

export interface RecordedEvent {
  readonly reason: string;
  readonly message: string;
}

/** Returns a recorder whose API server takes each event and hands it to `onEvent`. */
export function recorderTo(onEvent: (event: RecordedEvent) => void, clock: Clock): EventRecorder {
  const writes = writing(({ body }) => {
    const { reason = "", message = "" }: Partial<KubeEvent> = body;
    onEvent({ reason, message });
    return body;
  });
  return new EventRecorder({
    client: fakeClient(writes),
    source: { component: "legation", reportingComponent: "legation.dev/controller" },
    clock,
    log: createLogger({ level: "silent" }),
  });
}
