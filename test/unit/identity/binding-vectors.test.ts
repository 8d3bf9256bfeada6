import { readFileSync, writeFileSync } from 'node:fs'
import { fromHex } from '../../../backend/src/protocol/bytes.js'
import { parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { verifyBinding } from '../../../src/client/verify-binding.js'
import { type BindingVector, bindingVectors } from '../../support/identity/binding-vectors.js'
import { bindingByText } from '../../support/identity/brc174.js'

const file = new URL('../../vectors/identity-bindings.json', import.meta.url)

const vectors = async (): Promise<BindingVector[]> => {
  // After a change: WRITE_VECTORS=1 npm test -- test/unit/identity/binding-vectors.test.ts, then npm run format.
  if (process.env.WRITE_VECTORS) writeFileSync(file, `${JSON.stringify(await bindingVectors(), null, 2)}\n`)
  return JSON.parse(readFileSync(file, 'utf8')) as BindingVector[]
}

/** By title, so that a failure names the vector. */
const byTitle = (all: BindingVector[], result: (vector: BindingVector) => unknown) =>
  Object.fromEntries(all.map((vector) => [vector.title, result(vector)]))

test('the published vectors are those of our builder', async () => {
  const all = await vectors()
  expect(all).toEqual(await bindingVectors())
  expect(new Set(all.map(({ title }) => title)).size).toBe(all.length)
})

test('an implementation from the text of BRC-174 agrees with each', async () => {
  const all = await vectors()
  const found = byTitle(all, ({ script, spent }) => bindingByText(Buffer.from(script, 'hex'), spent))
  expect(found).toEqual(byTitle(all, ({ expected }) => expected))
})

test('the client agrees with each', async () => {
  const all = await vectors()
  const found = byTitle(all, ({ script, spent }) => {
    const binding = verifyBinding({ lockingScript: fromHex(script), spent: spent.map(parseOutpoint) })
    if (binding.state !== 'bound') return binding
    const { keyId, lockingKey, ...rest } = binding
    expect(spent.map((each) => `opns:${each}`)).toContain(keyId)
    expect(script).toContain(lockingKey)
    return rest
  })
  expect(found).toEqual(byTitle(all, ({ expected }) => expected))
})
