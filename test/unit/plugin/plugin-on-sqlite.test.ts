import { describePluginContract } from '../../support/plugin/plugin-contract.js'
import { useServers } from '../../support/server/test-server.js'

const { folder } = useServers()

// 2.0.2 is tried on databases: test/system/plugin/plugin-in-hosts.test.ts.
describePluginContract(async () => ({ name: 'host', KNEX_URL: `sqlite:${await folder()}`, MONGO_URL: '' }), {
  engines: ['0.4.6', '0.5.4', '2.6.3'],
})
