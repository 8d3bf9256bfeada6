import { MerklePath } from '@bsv/sdk'
import { parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { deploymentOf, PROFILES } from '../../../backend/src/protocol/profile.js'
import type { TransactionView } from '../../../backend/src/protocol/transaction.js'
import { verifyNameProof } from '../../../src/client/verify-name.js'
import { FakeHeaders, outpointBeef } from '../../support/client/name-proofs.js'
import { mainnetTransaction, mainnetVectors } from '../../support/protocol/mainnet-vectors.js'

// Real mints, with the covenant that the live network runs. Their merkle paths are fake: each of a block with one transaction.

const vectors = mainnetVectors()
const describeWithVectors = vectors === undefined ? describe.skip : describe

describeWithVectors('the real names', () => {
  if (vectors === undefined) {
    test('are in ../shared/vectors, which is not here', () => {})
    return
  }
  const { mints } = vectors.mineTree
  const genesis = parseOutpoint(vectors.mineTree.genesis)
  const deployment = deploymentOf(PROFILES.mainnet)
  if (deployment === undefined) throw new Error('the live tree has a genesis')
  const all = [genesis.txid, ...mints.map(({ txid }) => txid)].map(mainnetTransaction)
  const inBlock = ({ txid, raw }: TransactionView, at: number) => {
    const height = 806_214 + at
    const path = new MerklePath(height, [[{ offset: 0, hash: txid, txid: true }]])
    return { txid, raw, proof: { height, root: txid, merklePath: Uint8Array.from(path.toBinary()) } }
  }
  const chainTracker = new FakeHeaders()
  for (const [at, { txid }] of all.entries()) chainTracker.add({ txid, height: 806_214 + at })

  test.each(mints.map(({ name: { name }, txid }, index) => [name, txid, index] as const))(
    '%s descends from the genesis',
    async (name, txid, index) => {
      const records = all.slice(0, index + 2).map(inBlock)
      const proof = outpointBeef({ txid, vout: 2 }, records)
      expect(await verifyNameProof({ proof, name, deployment, chainTracker })).toMatchObject({
        name,
        origin: { txid, vout: 2 },
        proven: true,
        line: mints.slice(0, index + 1).map((mint, at) => ({ txid: mint.txid, height: 806_215 + at })),
      })
    },
  )

  test('are no names of another tree', async () => {
    const [first] = mints
    const proof = outpointBeef({ txid: first?.txid ?? '', vout: 2 }, all.slice(0, 2).map(inBlock))
    const other = { ...deployment, genesis: { ...genesis, vout: 1 } }
    const checking = verifyNameProof({ proof, name: 's', deployment: other, chainTracker })
    await expect(checking).rejects.toMatchObject({ name: 'ProofError' })
  })
})
