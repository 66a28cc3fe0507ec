import { describe, expect, test } from "vitest";
import { hostCluster, memberCluster } from "../../support/harness/clusters.ts";
import { kubectl } from "../../support/harness/kubectl.ts";
import { useLegation } from "../../support/harness/legation.ts";
import { freshNamespace } from "../../support/harness/namespace.ts";
import { eventuallyPasses } from "../../support/harness/wait.ts";
import { allWell, doctor, patient, remedyOf } from "../../support/legation/doctor.ts";
import { legationOn } from "../../support/legation/process.ts";

// Short, since a controller is frozen until its lease ends.
const running = useLegation({ controllerFlags: ["--lease-duration=6s"] });

describe("legation doctor", () => {
  test("finds objects that are missing or changed, which `legation install` puts right", async () => {
    const host = hostCluster();
    await kubectl(host, ["delete", "validatingadmissionpolicybinding", "legation-marks"]);
    const rules = [{ apiGroups: [""], resources: ["pods"], verbs: ["get"] }];
    await kubectl(host, ["patch", "clusterrole", "legation-viewer", `--patch=${JSON.stringify({ rules })}`]);
    const found = await doctor("--members=east");
    expect(remedyOf(found, "missing: ValidatingAdmissionPolicyBinding legation-marks")).toBe("legation install");
    expect(remedyOf(found, "not as this version installs them: ClusterRole legation-viewer")).toBe("legation install");
    expect(await legationOn(host, "install")).toMatchObject({ code: 0 });
    await allWell();
  });

  test("finds a label that opts no namespace in", async () => {
    const host = hostCluster();
    const namespace = await freshNamespace(host, { prefix: "doctor" });
    // This policy refuses such a label.
    await kubectl(host, ["delete", "validatingadmissionpolicybinding", "legation-namespaces"]);
    const label = ["label", "namespace", namespace, "legation.dev/delegation=anotated"];
    await eventuallyPasses(async () => {
      await kubectl(host, label);
    }, patient);
    const remedy = remedyOf(await doctor("--members=east"), `namespace ${namespace}: label legation.dev/delegation`);
    expect(remedy).toBe(`kubectl label --overwrite namespace ${namespace} legation.dev/delegation=annotated`);
    await kubectl(host, (remedy ?? "").split(" ").slice(1));
    expect(await legationOn(host, "install")).toMatchObject({ code: 0 });
    await allWell();
  });

  test("finds a way to a member that is cut", async () => {
    const west = memberCluster("west");
    await west.proxy.cut();
    try {
      expect(remedyOf(await doctor(), `west does not answer at ${west.proxiedServer}`)).toContain("mend the way there");
    } finally {
      await west.proxy.heal();
    }
    await allWell();
  });

  test("finds that no controller leads", async () => {
    await running().controller.freeze();
    await eventuallyPasses(async () => {
      const found = await doctor("--members=east");
      expect(remedyOf(found, "has not renewed its lease")).toBe("start `legation controller`, and read its log");
    }, patient);
    running().controller.thaw();
    await allWell();
  });
});
