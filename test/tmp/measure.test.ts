import { writeFileSync, appendFileSync } from 'node:fs'
import { graphRecords } from '../../backend/src/graph/records.js'
import { spendsBy } from '../../backend/src/graph/transaction-records.js'
import { readTransaction } from '../../backend/src/protocol/transaction.js'
import { concatBytes, utf8 } from '../../backend/src/protocol/bytes.js'
import { FakeChain, inscriptionScript, mapTail, p2pkh, type FakeTransaction } from '../support/protocol/fake-chain.js'
import { treeOf, useServers } from '../support/server/test-server.js'
import { TIP } from '../../backend/src/graph/graph-store.js'
import { onEachEngine } from '../support/storage/stores.js'

const servers = useServers()
const SIZES = (process.env.SIZES ?? '500,1000,2000').split(',').map(Number)
const KINDS = (process.env.KINDS ?? 'plain,carried,reinscribed,map').split(',')

const script = (kind: string, step: number, last: number): Uint8Array => {
  const owned = p2pkh(step % 250)
  if (step === 0 || kind === 'reinscribed' || (kind === 'carried' && step === last))
    return inscriptionScript({ contentType: 'text/plain', body: utf8(`step ${step}`) })
  return kind === 'map' ? concatBytes(owned, mapTail({ step: String(step), level: 'x'.repeat(20) })) : owned
}

onEachEngine(({ openStore, closeStores, name }) => {
  afterEach(closeStores)
  for (const kind of KINDS)
    for (const size of SIZES)
      test(`${kind} ${size}`, async () => {
        const chain = new FakeChain()
        const { node } = await servers.start({ ...treeOf(chain.deployment), CHAIN_TRACKER: 'scripts-only' })
        const { store } = await openStore()
        store.deriveBy(node.overlay.admission)
        const txs: FakeTransaction[] = []
        const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 9, lockingScript: p2pkh(1) }] })
        for (let step = 0; step <= size; step++)
          txs.push(chain.spend({ inputs: [{ transaction: txs[step - 1] ?? coin, vout: 0 }], outputs: [{ satoshis: 1, lockingScript: script(kind, step, size) }] }))
        const began = performance.now()
        const cpuBegan = process.cpuUsage()
        let longest = 0
        for (const [at, { raw }] of [...txs].reverse().concat(coin).entries()) {
          const view = readTransaction(raw)
          const proof = { height: 1000 - 0, merklePath: utf8('x'), root: '11'.repeat(32) }
          const t0 = performance.now()
          await store.record(graphRecords({ transactions: [{ txid: view.txid, raw, proof }], spends: spendsBy(view) }), { subject: view.txid })
          longest = Math.max(longest, performance.now() - t0)
          let backlog = 0
          for (;;) { const t1 = performance.now(); if (!(await store.backlog.workOff())) break; backlog++; longest = Math.max(longest, performance.now() - t1) }
        }
        const took = performance.now() - began
        const cpu = process.cpuUsage(cpuBegan)
        const spent = (cpu.user + cpu.system) / 1000
        const tip = { txid: txs.at(-1)!.txid, vout: 0 }
        const found = await store.ordinals.at(tip, TIP)
        appendFileSync('/tmp/h4-measure.txt', `${process.env.LABEL ?? ''} ${name} ${kind} ${size}: ${(took / 1000).toFixed(1)} s, ${(took / size).toFixed(2)} ms a step, cpu ${(spent / 1000).toFixed(1)} s, ${(spent / size).toFixed(2)} ms a step, longest write ${longest.toFixed(0)} ms, tip sequence ${found?.sequence}\n`)
        expect(found?.output.outpoint).toEqual(tip)
      }, 3_600_000)
})
