import type { LookupService } from '@bsv/overlay'
import { encodeAddress } from '../../backend/src/protocol/address.js'
import { ownerOf } from '../../test/support/graph/life.js'
import { CONTENT_TYPES, KEYS, PARENT } from '../../test/support/graph/said-outputs.js'
import type { ForestAnswers } from './answers.js'
import type { Forest } from './forest.js'
import { type Answered, expectedTips, namesOf, outpointsOf, SEQUENCES } from './reads.js'

/** What the lookup services answer to each of their forms. */
export async function lookupAnswers(
  services: Record<string, LookupService>,
  forest: Forest,
): Promise<Answered> {
  const answers: Answered = {}
  const ask = async (service: string, query: unknown): Promise<void> => {
    const found = (await services[service]?.lookup({ service, query })) ?? []
    if (!Array.isArray(found)) throw new Error('the answer is no list of outputs')
    answers[`${service} ${JSON.stringify(query)}`] = found.map(
      ({ txid, outputIndex }) => `${txid}_${outputIndex}`,
    )
  }
  for (const name of namesOf(forest)) {
    for (const query of [{ name }, { origin: name }, { mine: name }, { node: name }])
      await ask('ls_names', query)
  }
  await ask('ls_names', { node: '' })
  await ask('ls_names', { prefix: '' })
  await ask('ls_names', { prefix: 'a', limit: 2 })
  const all = outpointsOf(forest)
  for (const each of all) {
    await ask('ls_ordinals', { outpoint: each })
    for (const seq of SEQUENCES) await ask('ls_ordinals', { outpoint: each, seq })
  }
  for (const contentType of CONTENT_TYPES) await ask('ls_ordinals', { contentType })
  for (const key of KEYS) {
    await ask('ls_ordinals', { owner: encodeAddress(ownerOf(key), 'main') })
    for (const value of [0, 1, 2]) await ask('ls_ordinals', { map: { [`key ${key}`]: `value ${value}` } })
  }
  await ask('ls_ordinals', { parent: PARENT })
  return answers
}

export function expectedLookups(answers: ForestAnswers, forest: Forest): Answered {
  const expected: Answered = {}
  const put = (service: string, query: unknown, found: (string | undefined)[]): void => {
    expected[`${service} ${JSON.stringify(query)}`] = found.filter((each) => each !== undefined)
  }
  for (const name of namesOf(forest)) {
    const origin = answers.originOf(name)
    const node = answers.longestNode(name)
    put('ls_names', { name }, [origin && answers.currentOf(origin)])
    put('ls_names', { origin: name }, [origin])
    put('ls_names', { mine: name }, [node?.domain === name ? undefined : node?.outpoint])
    put('ls_names', { node: name }, answers.liveNodes(name))
  }
  put('ls_names', { node: '' }, answers.liveNodes(''))
  const origins = (prefix: string) =>
    answers.names.filter(({ name }) => name.startsWith(prefix)).map(({ outpoint }) => outpoint)
  put('ls_names', { prefix: '' }, origins(''))
  put('ls_names', { prefix: 'a', limit: 2 }, origins('a').slice(0, 2))
  for (const each of outpointsOf(forest)) {
    put('ls_ordinals', { outpoint: each }, answers.held.has(each) ? [each] : [])
    for (const seq of SEQUENCES)
      put('ls_ordinals', { outpoint: each, seq }, [answers.stepOf(each, seq)?.outpoint])
  }
  const tips = expectedTips(answers)
  for (const contentType of CONTENT_TYPES) put('ls_ordinals', { contentType }, tips[contentType] ?? [])
  for (const key of KEYS) {
    put('ls_ordinals', { owner: encodeAddress(ownerOf(key), 'main') }, tips[`owner ${key}`] ?? [])
    for (const value of [0, 1, 2]) {
      const found = tips[`key ${key}=value ${value}`] ?? []
      put('ls_ordinals', { map: { [`key ${key}`]: `value ${value}` } }, found)
    }
  }
  put('ls_ordinals', { parent: PARENT }, tips.parent ?? [])
  return expected
}
