// Asks a running weir with the clients that people have. Each line printed is one client that got
// the answers it should.
import assert from "node:assert/strict";
import { Redis } from "ioredis";
import { createClient } from "redis";

const port = Number(process.env.WEIR_RESP_PORT);
const first = [0, 16, 15, -1, 2];

async function ioredis() {
  const client = new Redis({ port, host: "127.0.0.1", connectionName: "ioredis" });
  assert.equal(await client.ping(), "PONG");
  assert.deepEqual(await client.call("CL.THROTTLE", "ioredis", 15, 30, 60), first);
  const pipeline = client.pipeline();
  for (let i = 0; i < 100; ++i) {
    pipeline.call("CL.THROTTLE", `ioredis ${i}`, 15, 30, 60);
  }
  for (const [error, reply] of await pipeline.exec()) {
    assert.equal(error, null);
    assert.deepEqual(reply, first);
  }
  const flat = await client.call("WEIR.CHECK", "key", "ioredis");
  assert.deepEqual(flat.slice(0, 2), ["allowed", 1]);
  await assert.rejects(client.call("CL.THROTTLE", "k"), /Usage/);
  await client.quit();
}

async function nodeRedis(version) {
  const client = createClient({ socket: { port, host: "127.0.0.1" }, RESP: version });
  client.on("error", (error) => { throw error; });
  await client.connect();
  assert.equal(await client.ping(), "PONG");
  const key = `node-redis ${version}`;
  assert.deepEqual(await client.sendCommand(["CL.THROTTLE", key, "15", "30", "60"]), first);
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, i) =>
      client.sendCommand(["CL.THROTTLE", `${key} ${i}`, "15", "30", "60"])));
  for (const answer of answers) {
    assert.deepEqual(answer, first);
  }
  const check = await client.sendCommand(["WEIR.CHECK", "key", key]);
  if (version === 3) {
    assert.equal(check.allowed ?? check.get?.("allowed"), true);
  } else {
    assert.deepEqual(check.slice(0, 2), ["allowed", 1]);
  }
  await client.close();
}

await ioredis();
console.log("ioredis");
await nodeRedis(2);
console.log("node-redis RESP2");
await nodeRedis(3);
console.log("node-redis RESP3");
