import { expect, test } from "vitest";
import { agentObjects } from "../../../../src/cli/join/agent-objects.ts";

test("lets the agent's pod leave a lost node long before the host evicts the member's pods", () => {
  const account = { hostId: "1f0c2a9b", hostName: "berlin", cluster: "west" };
  const agent = { image: "i", hub: "hub:8132", authorities: "a", token: "t" };
  const deployment = agentObjects(account, { ...agent, homeApi: false, access: false }).find(
    ({ kind }) => kind === "Deployment",
  );
  expect(deployment).toMatchObject({
    spec: {
      template: {
        spec: {
          tolerations: ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"].map((key) => ({
            key,
            operator: "Exists",
            effect: "NoExecute",
            tolerationSeconds: 30,
          })),
        },
      },
    },
  });
});
