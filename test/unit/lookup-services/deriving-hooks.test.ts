import { deriveInHost, hostRules } from '../../../backend/src/graph/host-index.js'
import { NamesLookupService } from '../../../backend/src/lookup-services/NamesLookupService.js'
import { OrdinalsLookupService } from '../../../backend/src/lookup-services/OrdinalsLookupService.js'
import { concatBytes } from '../../../backend/src/protocol/bytes.js'
import NamesTopicManager from '../../../backend/src/topic-managers/NamesTopicManager.js'
import OrdinalsTopicManager from '../../../backend/src/topic-managers/OrdinalsTopicManager.js'
import { beefOf, FakeChain } from '../../support/protocol/fake-chain.js'
import { closeStores, openStore } from '../../support/storage/stores.js'

// As in the host of another engine, where the store derives what the topics admit from what hooks bring.

/** Code, which has no place in the pushes that unlock a node. */
const OP_NOP = 0x61

afterEach(closeStores)

test('a mint that nodes disagree about is neither kept nor stored until it is mined', async () => {
  const chain = new FakeChain()
  const { deployment } = chain
  const { store } = await openStore()
  hostRules(store).deployment = deployment
  deriveInHost(store)
  const reading = { reader: store, writer: store }
  const names = new NamesLookupService({ ...reading, deployment, derives: true })
  const ordinals = new OrdinalsLookupService({ ...reading, derivesBy: () => hostRules(store) })
  const managers = [new NamesTopicManager({ deployment, store }), new OrdinalsTopicManager({ store })]
  const loose = chain.mint('a', { unlockingScript: (script) => concatBytes(script, Uint8Array.of(OP_NOP)) })
  const hook = async (proven: boolean): Promise<void> => {
    const atomicBEEF = Array.from(beefOf(loose, { proven, with: [chain.genesis] }))
    const notice = { mode: 'whole-tx' as const, atomicBEEF, outputIndex: 2 }
    await names.outputAdmittedByTopic({ ...notice, topic: 'tm_names' })
    await ordinals.outputAdmittedByTopic({ ...notice, topic: 'tm_ordinals' })
  }
  const kept = async (proven: boolean): Promise<number[][]> =>
    await Promise.all(
      managers.map(async (manager) => {
        const beef = beefOf(loose, { proven, with: [chain.genesis] })
        return (await manager.identifyAdmissibleOutputs(beef, [])).outputsToAdmit
      }),
    )
  expect(await kept(false)).toEqual([[], []])
  await hook(false)
  expect(await store.transactions.has(loose.txid)).toBe(false)
  expect(await kept(true)).toEqual([[0, 1, 2], expect.arrayContaining([2])])
  await hook(true)
  expect(await store.transactions.has(loose.txid)).toBe(true)
})
