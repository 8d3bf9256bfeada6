import type { LookupService, TopicManager } from '@bsv/overlay'
import type { Knex } from 'knex'
import {
  createNamesLookupService,
  createOrdinalsLookupService,
  NamesTopicManager,
  OrdinalsTopicManager,
} from '../../../src/plugin/index.js'
import type { LookupService2, TopicManager2 } from '../../support/plugin/engine-2.js'
import { beefOf, FakeChain } from '../../support/protocol/fake-chain.js'

// `npm run check:types` holds what is declared here against both; the tests call it as each engine does.

const chain = new FakeChain()
const managers: (TopicManager & TopicManager2)[] = [
  new NamesTopicManager({ deployment: chain.deployment }),
  new OrdinalsTopicManager(),
]
// A factory only keeps the database.
const database = {} as Knex
const services: (LookupService & LookupService2)[] = [
  createNamesLookupService(database).service,
  createOrdinalsLookupService(database).service,
]

afterAll(async () => {
  for (const service of services as { close?: () => Promise<void> }[]) await service.close?.()
})

// The genesis is paid for by a coin that nobody knows: it may hold an ordinal, and an engine that is given it keeps it.
test.each([
  [[], [0]],
  [[undefined, 'current-tx', { dryRun: true }], [0]],
  [[[1, 2], 'historical-tx-no-spv', {}], [0]],
  // Here an engine asks whether it has to fetch that coin.
  [[undefined, 'historical-tx'], []],
] as [unknown[], number[]][])(
  'topic managers accept the arguments of every engine: %j',
  async (more, ordinals) => {
    const beef = Array.from(beefOf(chain.genesis))
    const args = more as [number[]?, 'current-tx'?, { dryRun?: boolean }?]
    const admitted = await Promise.all(
      managers.map((manager: TopicManager2) => manager.identifyAdmissibleOutputs(beef, [], ...args)),
    )
    expect(admitted.map(({ outputsToAdmit }) => outputsToAdmit)).toEqual([[0], ordinals])
  },
)

test('lookup services ask for whole transactions, as long as no tables of an engine are known', () => {
  expect(services.map(({ admissionMode }) => admissionMode)).toEqual(['whole-tx', 'whole-tx'])
  expect(services.map(({ spendNotificationMode }) => spendNotificationMode)).toEqual(['none', 'whole-tx'])
})
