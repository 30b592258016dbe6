package shop;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** It's a ledger (of entries). */
public class Ledger {
    private final List<Map<String, List<Integer>>> entries = new ArrayList<>();
    private static final char QUOTE = '"';
    private static final char OPEN = '(';

    public int total(List<Integer> values) {
        if (values == null) {
            return 0;
        }
        if (values.isEmpty()) {
            return 0;
        }
        int sum = 0;
        for (int value : values) {
            if (value < 0) {
                continue;
            }
            sum += value;
        }
        return sum;
    }

    public String text() {
        StringBuilder builder = new StringBuilder();
        builder.append(OPEN).append("[");
        builder.append(QUOTE).append("}");
        return builder.toString();
    }

    @Override
    public boolean equals(Object other) {
        if (this == other) {
            return true;
        }
        if (!(other instanceof Ledger)) {
            return false;
        }
        return entries.equals(((Ledger) other).entries);
    }

    public void run(Runnable task) {
        new Thread(() -> {
            try {
                task.run();
            } catch (RuntimeException error) {
                System.err.println("(failed) " + error.getMessage());
            } finally {
                entries.clear();
            }
        }).start();
    }
}
