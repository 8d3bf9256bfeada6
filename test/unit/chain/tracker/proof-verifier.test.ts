import { Beef } from '@bsv/sdk'
import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { type FakeTransaction, inscriptionScript, OPEN_LOCK } from '../../../support/protocol/fake-chain.js'
import { type HeaderWorld, useHeaderWorlds } from '../../../support/server/header-world.js'

// Which proofs of a BEEF are stored, and that each is checked against the chain (docs/spec/overlay.md).

const worlds = useHeaderWorlds()

/** An inscription that was mined, and the mined transaction that its ordinal came from. */
function inscription({ chain, headers }: HeaderWorld): { funding: FakeTransaction; note: FakeTransaction } {
  const funding = chain.spend({ inputs: [], outputs: [{ satoshis: 3, lockingScript: OPEN_LOCK }] })
  const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8('a note') })
  const note = chain.move(funding, 0, lockingScript)
  headers.mine([funding])
  headers.mine([note])
  return { funding, note }
}

const heightIn = async ({ server }: HeaderWorld, { txid }: FakeTransaction): Promise<number | undefined> =>
  await server.node.graph.transactions.heightOf(txid)

describe('what places an ordinal', () => {
  const submit = ({ server, headers }: HeaderWorld, note: FakeTransaction, funding: FakeTransaction) =>
    server.submit(headers.branch.beef(note, [funding]), ['tm_ordinals'])

  const provenance = async ({ server }: HeaderWorld, note: FakeTransaction): Promise<Beef> => {
    const { body } = await server.ask(`/svc/gateway/provenance/${note.outpoint(0)}`)
    return Beef.fromBinary(Array.from(body.subarray(40)))
  }

  test('is kept without a path that leads nowhere, and refuses nothing', async () => {
    const world = await worlds.start()
    const { funding, note } = inscription(world)
    // The tracker has left the branch in which the funding was mined; the note stands in both.
    const { headers } = world
    const before = headers.branch
    const branch = headers.fork(headers.bestTip.height - 2)
    branch.mine()
    branch.mine([note])
    branch.mine()
    headers.reorg(branch)
    const beef = new Beef()
    for (const [transaction, line] of [
      [funding, before],
      [note, branch],
    ] as const) {
      const path = line.path(transaction.txid)
      beef.mergeRawTx(Array.from(transaction.raw), path && beef.mergeBump(path))
    }
    const sent = Uint8Array.from(beef.toBinary())
    expect((await world.server.submit(sent, ['tm_ordinals'])).status).toBe(200)
    expect(await heightIn(world, note)).toBe(headers.bestTip.height - 1)
    expect(await heightIn(world, funding)).toBeUndefined()
    expect((await provenance(world, note)).txs.map(({ bumpIndex }) => bumpIndex === undefined)).toEqual([
      true,
      false,
    ])
  })

  test('may come again once the tracker that stopped answering is back', async () => {
    const world = await worlds.start()
    const { funding, note } = inscription(world)
    const { height } = world.headers.bestTip
    const before = world.server.rows()
    world.tracker.onQuestion = (question) => {
      if (question.startsWith(`${height - 1} `)) world.tracker.mood = 'fails'
    }
    expect((await submit(world, note, funding)).status).toBe(503)
    expect(world.server.rows()).toEqual(before)
    world.tracker.onQuestion = undefined
    world.tracker.mood = 'answers'
    expect((await submit(world, note, funding)).status).toBe(200)
    expect(await heightIn(world, funding)).toBe(height - 1)
  })
})
