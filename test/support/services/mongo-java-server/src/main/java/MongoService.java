import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import java.util.List;

/**
 * Keeps documents in memory, listens on a free port of 127.0.0.1 and says on which, until its input ends: so it does not
 * outlive the test that started it.
 */
public final class MongoService {
    /** The oldest that the driver talks to; the server itself says that it is older. */
    private static final MongoVersion VERSION = new MongoVersion() {
        @Override
        public List<Integer> getVersionArray() {
            return List.of(4, 4, 0);
        }

        @Override
        public int getWireVersion() {
            return 9;
        }
    };

    public static void main(String[] arguments) throws Exception {
        MongoServer server = new MongoServer(new MemoryBackend().version(VERSION));
        System.out.println(server.bind().getPort());
        while (System.in.read() != -1) {
        }
        server.shutdownNow();
    }
}
