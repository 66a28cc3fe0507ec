import { describe, expect, test } from "vitest";
import type { Pod, Stored } from "../../../src/api/kubernetes.ts";
import { DelegateRequests } from "../../../src/clusters/delegate-requests.ts";
import { endedStatus, pod } from "../../support/builders/pod.ts";

function asking(cpu: string, uid = "uid-1"): Stored<Pod> {
  return pod({ uid, spec: { containers: [{ name: "main", image: "main", resources: { requests: { cpu } } }] } });
}

describe("the requests of a member's delegates", () => {
  test("counts a delegate once, from the decision until its deletion", () => {
    const load = new DelegateRequests();
    load.reserve("proxy", { cpu: 2, pods: 1 });
    expect(load.used).toEqual({ cpu: 2, pods: 1 });
    load.count(asking("2"), "proxy");
    load.count(asking("2"), "proxy");
    expect(load.used).toEqual({ cpu: 2, pods: 1 });
    load.forget(asking("2"));
    expect(load.used).toEqual({ cpu: 0, pods: 0 });
  });

  test("drops a proxy's reservation, however often it was made", () => {
    const load = new DelegateRequests();
    load.reserve("proxy", { cpu: 2 });
    load.reserve("proxy", { cpu: 3 });
    expect(load.used).toEqual({ cpu: 3 });
    load.release("proxy");
    load.release("proxy");
    expect(load.used).toEqual({ cpu: 0 });
  });

  test("counts a reservation by what the member stored, and no reservation that is over", () => {
    const load = new DelegateRequests();
    load.reserve("proxy", { pods: 1 }, "team");
    expect(load.correct("proxy", { cpu: 20, pods: 1 })).toBe(false);
    expect([load.used, load.usedIn("team"), load.reservedFor("proxy")]).toEqual(
      Array.from({ length: 3 }, () => ({ cpu: 20, pods: 1 })),
    );
    expect(load.correct("proxy", { cpu: 5, pods: 1 })).toBe(true);
    load.count(asking("20"), "proxy");
    expect(load.correct("proxy", { cpu: 1, pods: 1 })).toBe(false);
    expect(load.used).toEqual({ cpu: 20, pods: 1 });
  });

  test("counts a delegate as its member stores it, whatever was reserved", () => {
    const load = new DelegateRequests();
    load.reserve("proxy", { pods: 1 });
    const [main] = asking("20").spec?.containers ?? [];
    const spec = { containers: main === undefined ? [] : [main], overhead: { cpu: "500m" } };
    load.count(pod({ spec }), "proxy");
    expect(load.used).toEqual({ cpu: 20.5, pods: 1 });
  });

  test("sums the delegates below a priority until they are gone", () => {
    const load = new DelegateRequests();
    const of = (priority: number, uid: string): Stored<Pod> => {
      const delegate = asking("2", uid);
      return { ...delegate, spec: { ...delegate.spec, containers: delegate.spec?.containers ?? [], priority } };
    };
    load.count(of(5, "low"), undefined);
    load.count(of(10, "high"), undefined);
    load.count(asking("1", "none"), undefined);
    load.reserve("proxy", { cpu: 3, pods: 1 });
    expect([0, 5, 6, 11].map((priority) => load.below(priority).cpu ?? 0)).toEqual([0, 1, 3, 5]);
    load.forget(of(5, "low"));
    expect(load.below(11)).toEqual({ cpu: 3, pods: 2 });
  });

  test("reports freed resources once, and only of a counted delegate", () => {
    const load = new DelegateRequests();
    const delegate = asking("2");
    expect(load.forget(delegate)).toBe(false);
    expect(load.count(delegate, undefined)).toBe(false);
    const ended = { ...delegate, status: endedStatus(0) };
    expect(load.count(ended, undefined)).toBe(true);
    expect(load.count(ended, undefined)).toBe(false);
    expect(load.forget(ended)).toBe(false);
  });

  test("follows an in-place resize, and reports freed resources", () => {
    const load = new DelegateRequests();
    load.count(asking("1"), undefined);
    expect(load.count(asking("3"), undefined)).toBe(false);
    expect([load.used, load.usedIn("team")]).toEqual(Array(2).fill({ cpu: 3, pods: 1 }));
    expect(load.count(asking("2"), undefined)).toBe(true);
    expect([load.used, load.usedIn("team")]).toEqual(Array(2).fill({ cpu: 2, pods: 1 }));
    load.forget(asking("2"));
    expect(load.used).toEqual({ cpu: 0, pods: 0 });
  });

  describe("of unscheduled pods", () => {
    const bound = (delegate: Stored<Pod>): Stored<Pod> => ({
      ...delegate,
      spec: { containers: [], ...delegate.spec, nodeName: "node-0" },
    });
    let largest: number;
    const load = (): DelegateRequests => new DelegateRequests(({ cpu = 0 }) => cpu <= largest);

    test("counts a pod in full that fits some node", () => {
      largest = 2;
      const counted = load();
      counted.count(asking("2"), undefined);
      expect(counted.used).toEqual({ cpu: 2, pods: 1 });
      expect(counted.usedIn("team")).toEqual({ cpu: 2, pods: 1 });
    });

    test("counts a pod larger than any node as one object until it is scheduled", () => {
      largest = 2;
      const counted = load();
      counted.reserve("proxy", { cpu: 4, pods: 1 }, "team", true);
      expect(counted.used).toEqual({ pods: 1 });
      counted.count(asking("4"), "proxy");
      expect(counted.used).toEqual({ pods: 1 });
      counted.count(bound(asking("4")), "proxy");
      expect(counted.usedIn("team")).toEqual({ cpu: 4, pods: 1 });
      expect(counted.forget(asking("4"))).toBe(true);
      expect(counted.used).toEqual({ cpu: 0, pods: 0 });
    });

    test("counts the whole request against limits from the decision on", () => {
      largest = 2;
      const counted = load();
      const requested = (): unknown => [counted.usedIn(), counted.usedIn("team")];
      counted.reserve("proxy", { cpu: 4, pods: 1 }, "team", true);
      expect(counted.reservedFor("proxy")).toEqual({ cpu: 4, pods: 1 });
      expect(requested()).toEqual(Array(2).fill({ cpu: 4, pods: 1 }));
      counted.count(asking("4"), "proxy");
      expect(requested()).toEqual(Array(2).fill({ cpu: 4, pods: 1 }));
      counted.count(asking("3"), "proxy");
      expect(requested()).toEqual(Array(2).fill({ cpu: 3, pods: 1 }));
      counted.forget(asking("3"));
      expect(requested()).toEqual([{ cpu: 0, pods: 0 }, {}]);
    });

    test("recounts unscheduled pods after a change of the nodes, and no others", () => {
      largest = 2;
      const counted = load();
      counted.count(asking("4"), undefined);
      counted.count(bound(asking("3", "uid-2")), undefined);
      largest = 8;
      counted.recount();
      expect(counted.used).toEqual({ cpu: 7, pods: 2 });
      largest = 1;
      counted.recount();
      expect(counted.used).toEqual({ cpu: 3, pods: 2 });
      expect(counted.usedIn("team")).toEqual({ cpu: 7, pods: 2 });
    });
  });
});
