import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { Metrics } from '../../../../src/server/telemetry/metrics.js'
import { saidParts } from '../../../support/server/chain-parts.js'

interface Dashboard {
  panels: { id: number; title: string; targets: { expr: string }[] }[]
  templating: { list: { query: unknown }[] }
}

const file = resolve(import.meta.dirname, '../../../../deploy/grafana.json')
const dashboard = JSON.parse(readFileSync(file, 'utf8')) as Dashboard
const metrics = new Metrics({ chain: saidParts().parts })
metrics.addProcess()
const { body } = await metrics.text()
const types = new Map(
  [...body.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => [name, type]),
)
const queries = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))
const asked = [...queries, JSON.stringify(dashboard.templating)].flatMap((text) =>
  [...text.matchAll(/\b(?:minetree|process|nodejs)_\w+/g)].map(([name]) => name),
)
const family = (name: string): string => {
  const base = name.replace(/_(?:bucket|count|sum)$/, '')
  return types.get(base) === 'histogram' ? base : name
}

test('each query of the dashboard is about metrics that a server prints', () => {
  expect(queries.length).toBeGreaterThan(20)
  expect(asked.filter((name) => !types.has(family(name)))).toEqual([])
})

test('rates are of what only grows, and nothing else is shown of it', () => {
  for (const query of queries)
    for (const [, of = '', name = ''] of query.matchAll(/(\w*)\(?\b((?:minetree|process|nodejs)_\w+)\{/g)) {
      const grows = types.get(family(name)) !== 'gauge'
      expect({ query, grows }).toEqual({ query, grows: of === 'rate' || of === 'increase' })
    }
})

test('each metric of ours is on it', () => {
  const ours = [...types.keys()].filter((name) => name.startsWith('minetree_'))
  expect(ours.length).toBeGreaterThan(25)
  const shown = new Set(asked.map(family))
  expect(ours.filter((name) => !shown.has(name))).toEqual([])
})

test('braces and brackets of queries are in pairs, and panels have numbers of their own', () => {
  for (const query of queries) {
    const depth = (open: string, close: string) => query.split(open).length - query.split(close).length
    expect([query, depth('(', ')'), depth('{', '}'), depth('[', ']')]).toEqual([query, 0, 0, 0])
  }
  expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length)
})
