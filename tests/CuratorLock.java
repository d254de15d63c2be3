/* A Java service's lock: CuratorLock HOSTS mutex|read|write|N PATH NAME DIRECTORY.
 *
 * Takes the lock, of a semaphore of N a lease, notes NAME in DIRECTORY/log, makes the file NAME.up
 * there, and gives the lock back when there is a file NAME.go. */
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.ExponentialBackoffRetry;

public class CuratorLock {
    private interface Held {
        void release() throws Exception;
    }

    private static InterProcessLock lock(CuratorFramework client, String kind, String path) {
        if (kind.equals("mutex"))
            return new InterProcessMutex(client, path);
        InterProcessReadWriteLock both = new InterProcessReadWriteLock(client, path);
        return kind.equals("read") ? both.readLock() : both.writeLock();
    }

    private static Held acquire(CuratorFramework client, String kind, String path)
        throws Exception {
        if (kind.matches("[0-9]+")) {
            InterProcessSemaphoreV2 semaphore =
                new InterProcessSemaphoreV2(client, path, Integer.parseInt(kind));
            Lease lease = semaphore.acquire();
            return () -> semaphore.returnLease(lease);
        }
        InterProcessLock lock = lock(client, kind, path);
        lock.acquire();
        return lock::release;
    }

    public static void main(String[] words) throws Exception {
        String hosts = words[0], kind = words[1], path = words[2], name = words[3];
        Path directory = Path.of(words[4]);

        try (CuratorFramework client = CuratorFrameworkFactory.newClient(
                 hosts, 5000, 15000, new ExponentialBackoffRetry(100, 10))) {
            client.start();
            Held held = acquire(client, kind, path);
            Files.writeString(directory.resolve("log"), name + "\n", StandardOpenOption.CREATE,
                StandardOpenOption.APPEND);
            Files.writeString(directory.resolve(name + ".up"), "");
            while (!Files.exists(directory.resolve(name + ".go")))
                Thread.sleep(50);
            held.release();
        }
    }
}
