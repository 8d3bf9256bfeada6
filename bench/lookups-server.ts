import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { TOPICS } from '../backend/src/protocol/profile.js'
import { startServer } from '../src/server/server.js'
import { beefOf, FakeChain } from '../test/support/protocol/fake-chain.js'
import { answerCpuTime, processFolder } from './process-folder.js'
import { chainOfNames, configFor, SILENT } from './support.js'

/** The process that `lookups` loads: our server over a tree of names, and a bare Express app beside it. */
const folder = processFolder()

const chain = new FakeChain()
const server = await startServer({ config: configFor(chain, folder), logger: SILENT })
const names = chainOfNames(500)
for (const mint of [chain.genesis, ...names.map((name) => chain.mint(name))]) {
  const beef = beefOf(mint)
  await server.node.overlay.engine.submit({ beef, topics: Object.values(TOPICS) })
}

const bare = express()
  .get('/svc/names/origin/:name', ({ params }, response) => {
    response.json({ name: params.name, outpoint: `${chain.genesis.txid}_2` })
  })
  .listen(0, '127.0.0.1')
await once(bare, 'listening')
const { port } = bare.address() as AddressInfo
answerCpuTime()
process.send?.({ url: server.url, bare: `http://127.0.0.1:${port}`, names })
