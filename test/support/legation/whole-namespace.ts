import { DELEGATION_LABEL } from "../../../src/api/keys.ts";
import { afterFile } from "../harness/after-file.ts";
import { hostCluster, memberCluster } from "../harness/clusters.ts";
import { freshNamespace } from "../harness/namespace.ts";

/** Creates a namespace in host and members, whose objects may ask to be delegated. It goes after the file. */
export function newNamespace(): Promise<string> {
  const all = [hostCluster(), memberCluster("west"), memberCluster("east")];
  return freshNamespace(all, { labels: { [DELEGATION_LABEL]: "annotated" }, onFinished: afterFile });
}
