import { readFileSync } from 'node:fs'
import type { OpenapiDocument } from '../../../../src/gateway/openapi/document.js'
import { ConfigError, readConfig } from '../../../../src/server/config/config.js'
import { LIMITS, type Limits } from '../../../../src/server/config/limits.js'
import { useServers } from '../../../support/server/test-server.js'

const entries = Object.entries(LIMITS) as [keyof Limits, (typeof LIMITS)[keyof Limits]][]
const page = readFileSync('docs/limits.md', 'utf8')

test('where nothing is set, each limit is its usual one', () => {
  const usual = Object.fromEntries(entries.map(([name, { usual }]) => [name, usual]))
  expect(readConfig({}).limits).toEqual(usual)
})

test.each(entries)('%s is what its setting says, within its bounds', (name, { setting, least, most }) => {
  // A request takes at least as long as its headers.
  const env = name === 'headersTimeout' ? { REQUEST_TIMEOUT_MS: String(most) } : {}
  const shortest = name === 'requestTimeout' ? { HEADERS_TIMEOUT_MS: '1' } : env
  const read = (value: number): number => readConfig({ ...shortest, [setting]: String(value) }).limits[name]
  expect([read(least), read(most)]).toEqual([least, most])
  for (const value of [least - 1, most + 1]) {
    expect(() => read(value)).toThrow(ConfigError)
    expect(() => read(value)).toThrow(
      new RegExp(`^${setting}: must be a whole number from ${least} to ${most}, not ${value}$`),
    )
  }
})

test('a request may not be cut off before its headers may', () => {
  const env = { HEADERS_TIMEOUT_MS: '2001', REQUEST_TIMEOUT_MS: '2000' }
  expect(() => readConfig(env)).toThrow(/^HEADERS_TIMEOUT_MS: must not exceed REQUEST_TIMEOUT_MS$/)
})

const server = await useServers().start()
const { paths } = (await server.ask('/openapi.json')).json as OpenapiDocument

test.each(Object.keys(paths))('docs/limits.md says what %s may cost, in bytes, CPU and time', (path) => {
  const rows = page
    .split('\n')
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .filter((cells) => cells[1]?.split(', ').includes(`\`${path}\``))
  expect(rows).toEqual([['', expect.any(String), ...new Array(3).fill(expect.stringMatching(/../)), '']])
})

test('docs/limits.md lists every limit with its default', () => {
  for (const [, { setting, usual }] of entries) {
    const row = page.split('\n').find((line) => line.startsWith(`| \`${setting}\``))
    expect({ setting, usual: row?.split('|')[2]?.trim() }).toEqual({ setting, usual: String(usual) })
  }
})
