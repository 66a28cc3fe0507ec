import { MemberClients, type OpenMember } from "../../../../src/cli/shared/open-member.ts";
import { LiveView } from "../../../../src/cli/ui/live-view.ts";
import { ViewInUse } from "../../../../src/cli/ui/view-in-use.ts";
import type { Viewer } from "../../../../src/cli/ui/viewer.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { realClock } from "../../../../src/runtime/clock.ts";

const closed: OpenMember = (name) => Promise.reject(new Error(`${name} was not to be opened`));

/** A signed-in user of the page. */
export function viewerOf(host: ClusterClient, openMember: OpenMember = closed): Viewer {
  return {
    host,
    hostName: "host",
    namespace: "team",
    view: new ViewInUse(() => new LiveView({ host, clock: realClock }), realClock),
    members: new MemberClients(openMember),
    signal: new AbortController().signal,
  };
}
